// Laws that hold for every pattern, shape, machine and choice of knobs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "any_run.hpp"
#include "hand_machine.hpp"
#include "model/cost/nodes_cost.hpp"
#include "model/machine/parameters.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

constexpr std::array kParts{&TimeAccount::compute_ns,    &TimeAccount::memory_ns,
                            &TimeAccount::wire_ns,       &TimeAccount::launch_ns,
                            &TimeAccount::locality_ns,   &TimeAccount::bulk_synchronous_ns,
                            &TimeAccount::contention_ns, &TimeAccount::harness_ns};

bool close(double a, double b, double tolerance = 1e-9) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

// Every number of a result, to compare runs bit by bit.
std::vector<double> numbers_of(const SimulationResult& result) {
  std::vector<double> out{result.makespan_ns,
                          result.kernels_ns,
                          result.matrix_flops,
                          result.hbm_bytes,
                          result.l2_hit_fraction,
                          result.llc_hit_fraction,
                          static_cast<double>(result.tile_operations),
                          static_cast<double>(result.events)};
  for (const auto part : kParts) out.push_back(result.account.*part);
  for (const RankResult& rank : result.ranks) {
    for (const auto part : kParts) out.push_back(rank.account.*part);
    out.insert(out.end(), {rank.makespan_ns, rank.kernels_ns, rank.cu_busy_ns});
  }
  out.insert(out.end(), result.link_bytes.begin(), result.link_bytes.end());
  return out;
}

RC_GTEST_PROP(AccountLaw, PartsAreNotNegativeAndSumToTheMakespan, ()) {
  const AnyRun run = any_run();
  const SimulationResult result = simulate(run.schedule(), run.machine);
  RC_ASSERT(result.ranks.size() == static_cast<std::size_t>(run.workload.gpus));
  RC_ASSERT(close(result.account.sum_ns(), result.makespan_ns));
  double latest = 0;
  for (const RankResult& rank : result.ranks) {
    RC_ASSERT(close(rank.account.sum_ns(), rank.makespan_ns));
    for (const auto part : kParts) RC_ASSERT((rank.account.*part) >= 0);
    latest = std::max(latest, rank.makespan_ns);
  }
  for (const auto part : kParts) RC_ASSERT((result.account.*part) >= 0);
  RC_ASSERT(result.makespan_ns == latest);
}

RC_GTEST_PROP(DeterminismLaw, EqualInputGivesEqualBitsAlsoInOtherThreads, ()) {
  const AnyRun run = any_run();
  const Schedule schedule = run.schedule();
  SimulationOptions options;
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  const std::vector<double> first = numbers_of(simulate(schedule, run.machine, options));
  std::vector<std::vector<double>> others(3);
  std::vector<std::thread> threads;
  for (auto& other : others) {
    threads.emplace_back([&] { other = numbers_of(simulate(run.schedule(), run.machine, options)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& other : others) RC_ASSERT(other == first);
}

// Multiplies every rate and clock by `factor` and divides every time by it.
Machine faster(Machine machine, double factor) {
  for (const ParameterSpec& spec : parameter_specs()) {
    const bool rate = spec.dimension == Dimension::rate || spec.dimension == Dimension::clock ||
                      spec.dimension == Dimension::power;
    if (rate) scale_parameter(machine, spec, factor);
    if (spec.dimension == Dimension::time) scale_parameter(machine, spec, 1 / factor);
  }
  return machine;
}

// Powers of two scale every intermediate result without rounding, so the law is exact. Other factors round,
// which must not decide who comes first among events that fall on the same time, nor whether what fits a
// cache exactly is in it.
RC_GTEST_PROP(ScalingLaw, EveryRateTimesKAndEveryLatencyOverKDividesTheTimeByK, ()) {
  AnyRun run = any_run();
  const double factor = *rc::gen::element(0.25, 0.3, 0.5, 2.0, 3.0, 8.0, 10.0);
  const bool exact = std::exp2(std::round(std::log2(factor))) == factor;
  const SimulationResult before = simulate(run.schedule(), run.machine);
  run.machine = faster(run.machine, factor);
  const SimulationResult after = simulate(run.schedule(), run.machine);
  RC_LOG() << before.makespan_ns << " ns, " << factor << " times as fast " << after.makespan_ns << " ns\n";
  const double tolerance_ns = exact ? 0 : 1e-9 * before.makespan_ns;
  RC_ASSERT(std::abs(before.makespan_ns - after.makespan_ns * factor) <= tolerance_ns);
  for (const auto part : kParts) {
    RC_ASSERT(std::abs((before.account.*part) - (after.account.*part) * factor) <= tolerance_ns);
  }
}

// Bytes that each rank puts on its way to each other one, by the operations of a schedule alone: who stores,
// copies or adds sends to the tile's rank, who loads, reduces or copies from elsewhere fetches from there.
struct Exchanged {
  explicit Exchanged(const Schedule& schedule)
      : ranks(static_cast<std::size_t>(schedule.ranks)), bytes(ranks * ranks, 0) {
    const auto bytes_of_tile = [&](const Op& op) {
      const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(op.buffer)];
      return static_cast<double>(op.rect.rows) * op.rect.cols * tritax::bytes_of(buffer.dtype);
    };
    for (const Kernel& kernel : schedule.kernels) {
      for (std::size_t p = 0; p < program_count(kernel); ++p) {
        for (const Op& op : ops_of(schedule, program_of(kernel, p))) {
          if (op.kind == OpKind::store || op.kind == OpKind::atomic_add) {
            add(kernel.rank, op.rank, bytes_of_tile(op));
          } else if (op.kind == OpKind::copy) {
            add(op.src_rank, op.rank, bytes_of_tile(op));
          } else if (op.kind == OpKind::load || op.kind == OpKind::reduce) {
            add(op.rank, kernel.rank, bytes_of_tile(op));
          }
        }
      }
    }
    for (const Op& op : schedule.transfers) add(op.src_rank, op.rank, bytes_of_tile(op));
  }
  void add(std::int32_t from, std::int32_t to, double more) {
    if (from != to) bytes[static_cast<std::size_t>(from) * ranks + static_cast<std::size_t>(to)] += more;
  }
  double sent_by(std::size_t rank) const {
    double sum = 0;
    for (std::size_t to = 0; to < ranks; ++to) sum += bytes[rank * ranks + to];
    return sum;
  }
  double received_by(std::size_t rank) const {
    double sum = 0;
    for (std::size_t from = 0; from < ranks; ++from) sum += bytes[from * ranks + rank];
    return sum;
  }

  std::size_t ranks;
  std::vector<double> bytes;  // [from * ranks + to]
};

// Those of machines of several nodes on nodes of two GPUs.
AnyRun any_run_over_nodes() {
  AnyRun run = any_run();
  if (run.machine.nodes > 1) {
    run.machine.nodes = 4;
    run.machine.gpus_per_node = 2;
  }
  return run;
}

RC_GTEST_PROP(ConservationLaw, EveryByteThatLeavesARankIsCarriedByEveryLinkOfItsRoute, ()) {
  const AnyRun run = any_run_over_nodes();
  const Schedule schedule = run.schedule();
  const Exchanged exchanged(schedule);
  const SimulationResult result = simulate(schedule, run.machine);
  const Topology topology = build_topology(run.machine, run.workload.gpus);
  std::vector<double> expected(topology.edges.size(), 0.0);
  for (std::size_t from = 0; from < exchanged.ranks; ++from) {
    for (std::size_t to = 0; to < exchanged.ranks; ++to) {
      for (const int edge : topology.routes[from][to])
        expected[static_cast<std::size_t>(edge)] += exchanged.bytes[from * exchanged.ranks + to];
    }
  }
  RC_ASSERT(result.link_bytes == expected);
}

// Every rank receives the columns of each other rank once, whichever rank hands them on; sends are its own
// columns, unless libraries hand blocks on over several nodes (model/parts/library_nodes.hpp).
RC_GTEST_PROP(ConservationLaw, EveryRankReceivesTheColumnsOfAllOthersOnce, ()) {
  const AnyRun run = any_run_over_nodes();
  const Exchanged exchanged(run.schedule());
  const int gpus = run.workload.gpus;
  const bool handed_on = run.pattern->vendor && node_grid(run.machine, gpus).several();
  double all = 0;
  for (int rank = 0; rank < gpus; ++rank) all += egress_bytes(run.workload, rank);
  for (int rank = 0; rank < gpus; ++rank) {
    const double own = egress_bytes(run.workload, rank);
    const double others = gpus > 1 ? (all - own) / (gpus - 1) : 0;
    RC_ASSERT(exchanged.received_by(static_cast<std::size_t>(rank)) == others);
    if (!handed_on) RC_ASSERT(exchanged.sent_by(static_cast<std::size_t>(rank)) == own);
  }
}

RC_GTEST_PROP(WorkLaw, FlopsAreThoseOfTheProductAndNoResourceExceedsItsRate, ()) {
  const AnyRun run = any_run();
  const SimulationResult result = simulate(run.schedule(), run.machine);
  const Gpu& gpu = run.machine.gpu;
  const double gpus = run.workload.gpus;
  RC_ASSERT(close(result.matrix_flops, flops(run.workload)));
  RC_ASSERT(result.hbm_bytes <= gpus * gpu.hbm_gb_per_s * result.makespan_ns * (1 + 1e-9));
  const MatrixRate& rate = gpu.rate(run.workload.dtype);
  const double peak = rate.flop_per_clk_per_cu * gpu.boost_clock_ghz * gpu.cu_count();
  RC_ASSERT(result.matrix_flops <= gpus * peak * result.makespan_ns);
  const Topology topology = build_topology(run.machine, run.workload.gpus);
  for (std::size_t edge = 0; edge < topology.edges.size(); ++edge) {
    RC_ASSERT(result.link_bytes[edge] <= topology.edges[edge].raw_gb_per_s * result.kernels_ns * (1 + 1e-9));
  }
  for (int rank = 0; rank < run.workload.gpus; ++rank) {
    RC_ASSERT(egress_bytes(run.workload, rank) <=
              store_ports(run.machine, run.machine.interpreter, run.workload.gpus).egress_gb_per_s *
                  result.kernels_ns * (1 + 1e-9));
  }
  RC_ASSERT(result.kernels_ns <= result.makespan_ns);
  RC_ASSERT(result.l2_hit_fraction >= 0 && result.l2_hit_fraction <= 1);
  RC_ASSERT(result.llc_hit_fraction >= 0 && result.llc_hit_fraction <= 1);
}

RC_GTEST_PROP(CacheLaw, EveryByteAskedForComesFromOneLevelAndMemoriesCarryWhatTheRowsSay, ()) {
  const AnyRun run = any_run();
  SimulationOptions options;
  options.written_before_bytes = *rc::gen::element(0.0, 1e6, 1e9);
  options.warm = *rc::gen::arbitrary<bool>();
  const Schedule schedule = run.schedule();
  const SimulationResult result = simulate(schedule, run.machine, options);
  const double writes = run.machine.gpu.hbm_write_gb_per_s;
  const double write_cost = writes > 0 ? run.machine.gpu.hbm_gb_per_s / writes : 1;
  double carried = 0;
  double stored = 0;  // to anything, as often as it is stored
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::store || op.kind == OpKind::copy || op.kind == OpKind::atomic_add)
      stored += bytes_of(schedule.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
  }
  for (const CacheRow& row : result.caches) {
    const CacheTraffic& traffic = row.traffic;
    RC_ASSERT(row.rank < schedule.ranks);
    RC_ASSERT(row.die < run.machine.gpu.xcds);
    RC_ASSERT(traffic.l2_hit_bytes >= 0 && traffic.llc_hit_bytes >= 0 && traffic.hbm_read_bytes >= 0);
    RC_ASSERT(traffic.asked_bytes == traffic.l2_hit_bytes + traffic.llc_hit_bytes + traffic.hbm_read_bytes);
    if (row.die < 0) RC_ASSERT(traffic.l2_hit_bytes + traffic.llc_hit_bytes == 0);
    if (run.machine.gpu.llc_bytes == 0) RC_ASSERT(traffic.llc_hit_bytes == 0);
    carried += traffic.hbm_read_bytes + write_cost * traffic.hbm_written_bytes;
    if (row.operation != OpKind::matmul) stored -= traffic.hbm_written_bytes;
  }
  RC_ASSERT(close(carried, result.hbm_bytes, 1e-6));
  RC_ASSERT(stored >= -1e-6);
}

// Cutting a transfer.

// `senders` workgroups of rank 0 each send the same rows to one of `peers`, in `pieces` pieces.
SimulationResult send_in_pieces(const Machine& machine, int senders, int peers, int pieces) {
  constexpr std::int32_t kRows = 1 << 10;
  ScheduleBuilder builder("cut", peers + 1);
  const auto data = builder.buffer({"data", DType::fp16, kRows * senders, 64, kRows / pieces, 64});
  Kernel kernel;
  kernel.name = "send";
  const auto id = builder.kernel(kernel);
  for (int w = 0; w < senders; ++w) {
    builder.workgroup(id);
    for (int p = 0; p < pieces; ++p) {
      const Rect rect{w * kRows + p * (kRows / pieces), 0, kRows / pieces, 64};
      builder.copy(data, rect, 1 + w % peers, data, rect.row, rect.col, 0);
    }
  }
  builder.launch(0, id);
  builder.host(0, HostOpKind::device_synchronize);
  return simulate(builder.finish(), machine);
}

RC_GTEST_PROP(CuttingLaw, FinerPiecesChangeNothingWithoutLatencyAndSpread, ()) {
  Machine machine = hand::machine(8);
  machine.fabric.link_raw_gb_per_s = *rc::gen::inRange(1, 100);
  machine.fabric.store_egress_gb_per_s = *rc::gen::inRange(1, 300);
  machine.gpu.hbm_gb_per_s = *rc::gen::inRange(1, 300);
  machine.gpu.cu_load_gb_per_s = *rc::gen::inRange(1, 100);
  const int senders = *rc::gen::inRange(1, 9);  // one on a compute unit
  const int peers = *rc::gen::inRange(1, 8);
  const double whole = send_in_pieces(machine, senders, peers, 1).makespan_ns;
  for (const int pieces : {2, 16, 1024}) {
    RC_ASSERT(close(send_in_pieces(machine, senders, peers, pieces).makespan_ns, whole));
  }
}

RC_GTEST_PROP(CuttingLaw, EveryPieceOfAChainPaysItsLatencyAndNothingElse, ()) {
  Machine machine = hand::machine(2);
  machine.gpu.cu_load_gb_per_s = *rc::gen::inRange(1, 60);
  machine.gpu.hbm_latency_ns = *rc::gen::inRange(0, 1000);
  const double whole = send_in_pieces(machine, 1, 1, 1).makespan_ns;
  for (const int pieces : {2, 16, 1024}) {
    RC_ASSERT(close(send_in_pieces(machine, 1, 1, pieces).makespan_ns,
                    whole + (pieces - 1) * machine.gpu.hbm_latency_ns));
  }
}

}  // namespace
}  // namespace tritax
