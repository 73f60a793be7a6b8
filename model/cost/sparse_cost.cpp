#include "model/cost/sparse_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "model/cost/lane_steps.hpp"
#include "model/cost/power_bound.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/op_views.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kNever = -1;

// Tracks which sectors the cache of a die, or of the GPU, holds.
struct SectorCache {
  double bytes = 0;             // capacity
  double entered = 0;           // bytes that entered since the start
  std::vector<double> touched;  // by sector: `entered` at the last request; negative: never

  // Counts a request; true if the cache has it.
  bool ask(std::size_t sector) {
    const bool hit = touched[sector] >= 0 && entered - touched[sector] <= bytes;
    if (!hit) entered += kMemorySectorBytes;
    touched[sector] = entered;
    return hit;
  }
};

// State of the caches of one GPU for one x.
struct XCaches {
  XCaches(const Gpu& gpu, std::size_t sectors)
      : l2(static_cast<std::size_t>(gpu.xcds), {gpu.l2_bytes, 0, std::vector<double>(sectors, -1.0)}),
        asked(sectors, kNever) {
    if (gpu.llc_bytes > 0) llc = {gpu.llc_bytes, 0, std::vector<double>(sectors, -1.0)};
  }

  std::vector<SectorCache> l2;
  SectorCache llc;
  std::vector<std::int32_t> asked;  // by sector: the last operation that requested it
};

void ask_for_x(const SparseMatrix& matrix, const Op& op, std::int32_t number, std::size_t die, double element,
               XCaches& caches, SparseCost& cost) {
  const auto per_sector = static_cast<std::int32_t>(kMemorySectorBytes / element);
  SectorCache& l2 = caches.l2[die];
  const bool has_llc = !caches.llc.touched.empty();
  for (std::int32_t k = op.k_begin; k < op.k_end; ++k) {
    const auto sector = static_cast<std::size_t>(matrix.columns[static_cast<std::size_t>(k)] / per_sector);
    if (caches.asked[sector] == number) continue;
    caches.asked[sector] = number;
    cost.x_bytes += kMemorySectorBytes;
    if (l2.ask(sector)) continue;
    cost.x_llc_bytes += kMemorySectorBytes;
    if (has_llc && caches.llc.ask(sector)) continue;
    cost.x_hbm_bytes += kMemorySectorBytes;
  }
}

// Latency of the slowest of `count` requests, each of which misses with probability `miss`.
double slowest_ns(double near_ns, double far_ns, double miss, double count) {
  return near_ns + (far_ns - near_ns) * (1 - std::pow(1 - std::clamp(miss, 0.0, 1.0), count));
}

// Contiguous elements of a lane, if the lane has its own elements.
double elements_of_walk(const Op& op, std::int32_t threads) {
  const double atoms = op.k_end - op.k_begin;
  switch (SparseView(op).sharing()) {
    case LaneSharing::row:
      return atoms / op.rect.rows;
    case LaneSharing::even:
      return atoms / threads;
    case LaneSharing::vector:
    case LaneSharing::group:
      break;
  }
  return 0;
}

// Share of the sectors requested again by resident lanes that the L2 has lost. Each lane uses one line of
// values and one line of columns. A line has one tag and occupies its whole room with any number of valid
// sectors; lanes with walks shorter than a line share a line.
double lost_share(const Gpu& gpu, double lanes, double walk, double element) {
  const double room =
      std::min(kMemoryLineBytes, walk * element) + std::min(kMemoryLineBytes, walk * kIndexBytes);
  return std::max(0.0, 1 - gpu.l2_bytes / std::max(lanes * room, gpu.l2_bytes));
}

double alone_ns(const Gpu& gpu, const LaneSteps& steps, const SparseCost& cost, double atoms, double element,
                std::int32_t sharers) {
  const double clock = gpu.boost_clock_ghz;
  const double lds_ns = kLdsLatencyClk / clock;
  const double begins = std::min(1.0, kStepsUnderWay * element / kMemorySectorBytes);
  const double stream_ns = slowest_ns(lds_ns, gpu.hbm_latency_ns, begins, steps.active);
  const double misses = atoms > 0 ? cost.x_llc_bytes / kMemorySectorBytes / atoms : 0;
  const double from_llc = cost.x_llc_bytes > 0 ? 1 - cost.x_hbm_bytes / cost.x_llc_bytes : 0;
  const double far_ns =
      gpu.hbm_latency_ns + from_llc * (std::min(gpu.llc_latency_ns, gpu.hbm_latency_ns) - gpu.hbm_latency_ns);
  const double x_ns = slowest_ns(gpu.l2_latency_ns, far_ns, misses, steps.active * kStepsUnderWay);
  const double chain_ns = gpu.hbm_latency_ns +
                          std::ceil(steps.longest / kStepsUnderWay) * (stream_ns + x_ns) +
                          steps.waits * lds_ns + steps.cold * gpu.hbm_latency_ns;
  const double wave_clk = gpu.lanes_per_wave > 32 ? 4 : 1;  // clocks per instruction, see attend_cost.hpp
  const double longest = steps.longest * steps.instructions + steps.more_longest;
  const double all = steps.all * steps.instructions + steps.more_all;
  const double issue_ns = wave_clk / clock * std::max(longest, all * sharers / gpu.simds_per_cu);
  const double exchange_clk = gpu.lanes_per_wave * kIndexBytes / kLdsBytesPerClk;
  const double lds_port_ns = sharers * steps.exchanges * exchange_clk / clock;
  const double port_ns =
      gpu.cu_l2_bytes_per_clk > 0 ? sharers * cost.bytes / (gpu.cu_l2_bytes_per_clk * clock) : 0;
  const double of_x = std::max(cost.x_bytes / kMemorySectorBytes, atoms / gpu.lanes_per_wave);
  const double lines_ns = sharers * (steps.lookups + of_x) / clock;
  return std::max({chain_ns, issue_ns, lds_port_ns, lines_ns, port_ns});
}

}  // namespace

std::int32_t workgroups_on_unit(const Gpu& gpu, const Kernel& kernel) {
  const std::int32_t units = kernel.cu_end > 0 ? kernel.cu_end - kernel.cu_begin : gpu.cu_count();
  const double even = std::ceil(static_cast<double>(kernel.workgroups.size()) / units);
  return std::max(1, std::min(residents_at_most(gpu, kernel.resources), static_cast<std::int32_t>(even)));
}

SparseCosts::SparseCosts(const Schedule& schedule, const Gpu& gpu) {
  if (schedule.sparse.empty()) return;
  place_of_.resize(schedule.ops.size(), 0);
  std::map<std::pair<std::int32_t, std::int16_t>, XCaches> caches;
  const auto dtype_bytes = [&](std::int16_t buffer) {
    return static_cast<double>(bytes_of(schedule.buffers[static_cast<std::size_t>(buffer)].dtype));
  };
  for (const Kernel& kernel : schedule.kernels) {
    const std::int32_t sharers = workgroups_on_unit(gpu, kernel);
    const double lanes_of_die = static_cast<double>(sharers) * gpu.cus_per_xcd * kernel.resources.threads;
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      for (std::uint32_t o = program.first_op; o < program.first_op + program.op_count; ++o) {
        const Op& op = schedule.ops[o];
        if (op.kind != OpKind::sparse_product) continue;
        const SparseMatrix& matrix = matrix_of(schedule, op);
        const double element = dtype_bytes(SparseView(op).values()), of_x = dtype_bytes(SparseView(op).x());
        const auto sectors = static_cast<std::size_t>(std::ceil(matrix.cols * of_x / kMemorySectorBytes)) + 1;
        XCaches& x = caches.try_emplace({kernel.rank, SparseView(op).x()}, gpu, sectors).first->second;
        const std::size_t die = p % static_cast<std::size_t>(gpu.xcds);
        SparseCost cost;
        ask_for_x(matrix, op, static_cast<std::int32_t>(o), die, of_x, x, cost);
        const double atoms = op.k_end - op.k_begin;
        const bool staged = kernel.resources.lds_bytes >= op.rect.rows * kIndexBytes;
        const LaneSteps steps =
            lane_steps(matrix, op, kernel.resources.threads, gpu.lanes_per_wave, element, staged);
        const double lost =
            lost_share(gpu, lanes_of_die, elements_of_walk(op, kernel.resources.threads), element);
        const double once = atoms * (element + kIndexBytes);
        const double offsets = (op.rect.rows + 1.0) * kIndexBytes;
        const double streams = once + lost * (steps.asked - once) + offsets;
        cost.bytes = steps.asked + offsets + cost.x_bytes;
        cost.llc_bytes = streams + cost.x_llc_bytes;
        cost.hbm_bytes = streams + cost.x_hbm_bytes;
        cost.alone_ns = alone_ns(gpu, steps, cost, atoms, element, sharers);
        x.l2[die].entered += streams;
        x.llc.entered += streams;
        place_of_[o] = static_cast<std::uint32_t>(costs_.size());
        costs_.push_back(cost);
      }
    }
  }
}

}  // namespace tritax
