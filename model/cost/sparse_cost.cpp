#include "model/cost/sparse_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "model/cost/power_bound.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kNever = -1;

// Lanes that walk along `length` elements each: what L1 looks up, and asks of the L2.
void add_walks(double walks, double length, double element, LaneSteps& found) {
  const double batches = std::ceil(length / kStepsUnderWay);
  for (const double bytes : {element, kIndexBytes}) {
    found.lookups += walks * length * std::min(1.0, length * bytes / kLineBytes);
    found.asked += walks * std::max(length * bytes, batches * std::min(kSectorBytes, length * bytes));
  }
}

double probes_of(double things) { return std::ceil(std::log2(std::max(things, 1.0))); }

// Visits the number of nonzeros of every row of an operation.
template <typename Visit>
void for_each_length(const SparseMatrix& matrix, const Op& op, Visit visit) {
  for (std::int32_t i = 0; i < op.rect.rows; ++i) {
    const std::int32_t begin = std::max(matrix.begin(op.rect.row + i), op.k_begin);
    const std::int32_t end = std::min(matrix.end(op.rect.row + i), op.k_end);
    visit(i, std::max(0, end - begin));
  }
}

// Steps of the waves of a workgroup, whose tasks go in turn to as many groups of lanes as it has.
class Waves {
 public:
  Waves(std::int32_t threads, std::int32_t lanes_per_wave, std::int32_t lanes)
      : groups_(std::max(1, threads / lanes)),
        lanes_(lanes),
        per_wave_(lanes_per_wave),
        steps_(static_cast<std::size_t>((threads + lanes_per_wave - 1) / lanes_per_wave), 0.0),
        work_(steps_),
        round_(steps_) {}

  void add(std::int32_t task, double steps, double atoms) {
    const std::int32_t group = task % groups_;
    if (group == 0) end_round();
    const std::int32_t first = group * lanes_ / per_wave_;
    const std::int32_t last =
        std::min((group * lanes_ + lanes_ - 1) / per_wave_, static_cast<std::int32_t>(steps_.size()) - 1);
    for (std::int32_t wave = first; wave <= last; ++wave) {
      double& longest = round_[static_cast<std::size_t>(wave)];
      longest = std::max(longest, steps);
      work_[static_cast<std::size_t>(wave)] += atoms / (last - first + 1);
    }
  }

  void finish(LaneSteps& found) {
    end_round();
    const auto longest = std::max_element(steps_.begin(), steps_.end());
    found.longest = *longest;
    const double work = work_[static_cast<std::size_t>(longest - steps_.begin())];
    found.active = std::clamp(*longest > 0 ? work / *longest : 1, 1.0, static_cast<double>(per_wave_));
    for (const double steps : steps_) found.all += steps;
  }

 private:
  void end_round() {
    for (std::size_t wave = 0; wave < steps_.size(); ++wave) steps_[wave] += std::exchange(round_[wave], 0);
  }

  std::int32_t groups_, lanes_, per_wave_;
  std::vector<double> steps_, work_, round_;
};

// Whether the cache of a die, or of the GPU, still has a sector.
struct SectorCache {
  double bytes = 0;             // that it holds
  double entered = 0;           // since the start
  std::vector<double> touched;  // by sector: `entered` when it was last asked for; negative: never

  // Counts a request; true if the cache has it.
  bool ask(std::size_t sector) {
    const bool hit = touched[sector] >= 0 && entered - touched[sector] <= bytes;
    if (!hit) entered += kSectorBytes;
    touched[sector] = entered;
    return hit;
  }
};

// What the caches of one GPU have of one x.
struct XCaches {
  XCaches(const Gpu& gpu, std::size_t sectors)
      : l2(static_cast<std::size_t>(gpu.xcds), {gpu.l2_bytes, 0, std::vector<double>(sectors, -1.0)}),
        asked(sectors, kNever) {
    if (gpu.llc_bytes > 0) llc = {gpu.llc_bytes, 0, std::vector<double>(sectors, -1.0)};
  }

  std::vector<SectorCache> l2;
  SectorCache llc;
  std::vector<std::int32_t> asked;  // by sector: the last operation that did
};

void ask_for_x(const SparseMatrix& matrix, const Op& op, std::int32_t number, std::size_t die, double element,
               XCaches& caches, SparseCost& cost) {
  const auto per_sector = static_cast<std::int32_t>(kSectorBytes / element);
  SectorCache& l2 = caches.l2[die];
  const bool has_llc = !caches.llc.touched.empty();
  for (std::int32_t k = op.k_begin; k < op.k_end; ++k) {
    const auto sector = static_cast<std::size_t>(matrix.columns[static_cast<std::size_t>(k)] / per_sector);
    if (caches.asked[sector] == number) continue;
    caches.asked[sector] = number;
    cost.x_bytes += kSectorBytes;
    if (l2.ask(sector)) continue;
    cost.x_llc_bytes += kSectorBytes;
    if (has_llc && caches.llc.ask(sector)) continue;
    cost.x_hbm_bytes += kSectorBytes;
  }
}

// Latency of the slowest of `count` requests, each of which misses with probability `miss`.
double slowest_ns(double near_ns, double far_ns, double miss, double count) {
  return near_ns + (far_ns - near_ns) * (1 - std::pow(1 - std::clamp(miss, 0.0, 1.0), count));
}

// How many elements side by side a lane takes, where it has some of its own.
double elements_of_walk(const Op& op, std::int32_t threads) {
  const double atoms = op.k_end - op.k_begin;
  switch (static_cast<LaneSharing>(op.src_row)) {
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

// What the L2 has lost of the sectors that resident lanes come back to. Each lane is in one line of values
// and one of columns. A line has one tag and so its whole room, however few of its sectors are there; lanes
// whose walks are shorter than a line share one.
double lost_share(const Gpu& gpu, double lanes, double walk, double element) {
  const double room = std::min(kLineBytes, walk * element) + std::min(kLineBytes, walk * kIndexBytes);
  return std::max(0.0, 1 - gpu.l2_bytes / std::max(lanes * room, gpu.l2_bytes));
}

double alone_ns(const Gpu& gpu, const LaneSteps& steps, const SparseCost& cost, double atoms, double element,
                std::int32_t sharers) {
  const double clock = gpu.boost_clock_ghz;
  const double lds_ns = kLdsLatencyClk / clock;
  const double begins = std::min(1.0, kStepsUnderWay * element / kSectorBytes);
  const double stream_ns = slowest_ns(lds_ns, gpu.hbm_latency_ns, begins, steps.active);
  const double misses = atoms > 0 ? cost.x_llc_bytes / kSectorBytes / atoms : 0;
  const double from_llc = cost.x_llc_bytes > 0 ? 1 - cost.x_hbm_bytes / cost.x_llc_bytes : 0;
  const double far_ns =
      gpu.hbm_latency_ns + from_llc * (std::min(gpu.llc_latency_ns, gpu.hbm_latency_ns) - gpu.hbm_latency_ns);
  const double x_ns = slowest_ns(gpu.l2_latency_ns, far_ns, misses, steps.active * kStepsUnderWay);
  const double chain_ns = gpu.hbm_latency_ns +
                          std::ceil(steps.longest / kStepsUnderWay) * (stream_ns + x_ns) +
                          steps.probes * lds_ns;
  const double wave_clk = gpu.lanes_per_wave > 32 ? 4 : 1;  // of an instruction, see attend_cost.hpp
  const double issue_ns =
      wave_clk * steps.instructions / clock * std::max(steps.longest, steps.all * sharers / gpu.simds_per_cu);
  const double port_ns =
      gpu.cu_l2_bytes_per_clk > 0 ? sharers * cost.bytes / (gpu.cu_l2_bytes_per_clk * clock) : 0;
  const double of_x = std::max(cost.x_bytes / kSectorBytes, atoms / gpu.lanes_per_wave);
  const double lines_ns = sharers * (steps.lookups + of_x) / clock;
  return std::max({chain_ns, issue_ns, lines_ns, port_ns});
}

}  // namespace

LaneSteps lane_steps(const SparseMatrix& matrix, const Op& op, std::int32_t threads,
                     std::int32_t lanes_per_wave, double element) {
  LaneSteps found;
  found.instructions = kStepInstructions;
  const auto sharing = static_cast<LaneSharing>(op.src_row);
  const auto lanes = static_cast<double>(op.value);
  const double atoms = op.k_end - op.k_begin;
  found.asked = atoms * (element + kIndexBytes);
  found.lookups = found.asked / std::min(kLineBytes, lanes_per_wave * kIndexBytes);
  const bool by_lane = sharing == LaneSharing::row;
  Waves waves(threads, lanes_per_wave, by_lane || sharing == LaneSharing::even ? 1 : op.value);
  double group = 0;
  switch (sharing) {
    case LaneSharing::row:
      found.asked = found.lookups = 0;
      for_each_length(matrix, op, [&](std::int32_t row, std::int32_t length) {
        waves.add(row, std::max(1, length), length);
        add_walks(1, length, element, found);
      });
      break;
    case LaneSharing::vector:
      for_each_length(matrix, op, [&](std::int32_t row, std::int32_t length) {
        waves.add(row, std::max(1.0, std::ceil(length / lanes)) + probes_of(lanes) / kStepInstructions,
                  length);
      });
      break;
    case LaneSharing::group:
      for_each_length(matrix, op, [&](std::int32_t row, std::int32_t length) {
        group += length;
        if ((row + 1) % op.value != 0 && row + 1 < op.rect.rows) return;
        waves.add(row / op.value, std::max(1.0, std::ceil(group / lanes)), group);
        group = 0;
      });
      found.instructions += 4 * probes_of(lanes);
      break;
    case LaneSharing::even: {
      const double things = op.rect.rows + atoms;
      for (std::int32_t lane = 0; lane < threads; ++lane) {
        waves.add(lane, std::ceil(things / threads), atoms / threads);
      }
      found.asked = found.lookups = 0;
      add_walks(threads, atoms / threads, element, found);
      found.instructions += kStepInstructions / 2;  // a step is a nonzero or the end of a row
      break;
    }
  }
  waves.finish(found);
  if (sharing == LaneSharing::group) found.probes = found.longest * probes_of(lanes);
  if (sharing == LaneSharing::even) found.probes = 2 * probes_of(op.rect.rows + atoms);
  return found;
}

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
        const SparseMatrix& matrix = *schedule.sparse[static_cast<std::size_t>(op.index)];
        const double element = dtype_bytes(op.src_buffer), of_x = dtype_bytes(op.b_buffer);
        const auto sectors = static_cast<std::size_t>(std::ceil(matrix.cols * of_x / kSectorBytes)) + 1;
        XCaches& x = caches.try_emplace({kernel.rank, op.b_buffer}, gpu, sectors).first->second;
        const std::size_t die = p % static_cast<std::size_t>(gpu.xcds);
        SparseCost cost;
        ask_for_x(matrix, op, static_cast<std::int32_t>(o), die, of_x, x, cost);
        const double atoms = op.k_end - op.k_begin;
        const LaneSteps steps = lane_steps(matrix, op, kernel.resources.threads, gpu.lanes_per_wave, element);
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
