#include "sim/symmetry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/parts/gemm_knobs.hpp"
#include "model/parts/product_shares.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/workload.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

constexpr double kOrderOfAdding = 1e-9;

Machine nodes_of_two(const char* name, int nodes) {
  Machine machine = find_machine(name);
  machine.nodes = nodes;
  machine.gpus_per_node = 2;
  return machine;
}

using Given = std::vector<std::pair<std::string_view, std::int64_t>>;

Schedule schedule_of(std::string_view workload, std::string_view pattern, const Machine& machine,
                     const Given& fields, const Given& knobs_given = {}) {
  Problem problem = problem_of(find_workload(workload, "test"));
  for (const auto& [name, value] : fields) problem.values.give(name, value);
  problem.values.give("gpus", machine.gpu_count());
  complete_problem(problem, "test");
  Values knobs = resolved_knobs(problem, machine, {});
  for (const auto& [name, value] : knobs_given) knobs.give(name, value);
  return build_schedule(find_pattern(*problem.workload, pattern, "test"), problem, machine, knobs);
}

SimulationResult run(const Schedule& schedule, const Machine& machine, Symmetry symmetry) {
  SimulationOptions options;
  options.seed = 3;
  options.symmetry = symmetry;
  return simulate(schedule, machine, options);
}

SimulationResult run_with_same_luck(const Schedule& schedule, const Machine& machine, Symmetry symmetry) {
  SimulationOptions options;
  options.seed = 3;
  options.symmetry = symmetry;
  options.same_luck = true;
  return simulate(schedule, machine, options);
}

void expect_near(double a, double b) { EXPECT_NEAR(a, b, kOrderOfAdding * std::max(1.0, b)); }

void expect_equal(const SimulationResult& a, const SimulationResult& b) {
  expect_near(a.makespan_ns, b.makespan_ns);
  expect_near(a.kernels_ns, b.kernels_ns);
  expect_near(a.account.wire_ns, b.account.wire_ns);
  expect_near(a.account.contention_ns, b.account.contention_ns);
  EXPECT_EQ(a.tile_operations, b.tile_operations);
  EXPECT_EQ(a.matrix_flops, b.matrix_flops);
  expect_near(a.hbm_bytes, b.hbm_bytes);
  EXPECT_EQ(a.link_bytes, b.link_bytes);
  ASSERT_EQ(a.ranks.size(), b.ranks.size());
  for (std::size_t rank = 0; rank < a.ranks.size(); ++rank) {
    expect_near(a.ranks[rank].makespan_ns, b.ranks[rank].makespan_ns);
    expect_near(a.ranks[rank].cu_busy_ns, b.ranks[rank].cu_busy_ns);
  }
  ASSERT_EQ(a.caches.size(), b.caches.size());
  for (std::size_t row = 0; row < a.caches.size(); ++row) {
    EXPECT_EQ(a.caches[row].rank, b.caches[row].rank);
    expect_near(a.caches[row].traffic.hbm_read_bytes, b.caches[row].traffic.hbm_read_bytes);
  }
}

struct Case {
  std::string_view workload;
  std::string_view pattern;
  Given fields;
};

const Given kProduct{{"m", 512}, {"n", 2048}, {"k", 256}};
const Given kLarger{{"m", 2048}, {"n", 2048}, {"k", 512}};
const Given kMatrix{{"rows", 512}, {"cols", 512}};

// Law: nodes that behave alike, simulated once, take as long as all of them with the same random shares.
class SymmetricRun : public testing::TestWithParam<Case> {};

TEST_P(SymmetricRun, IsTheFullRunWithTheSameLuck) {
  const Case& one = GetParam();
  for (const char* name : {"mi300x-8x8", "h200-8x8"}) {
    SCOPED_TRACE(name);
    const Machine machine = nodes_of_two(name, 4);
    const Schedule schedule = schedule_of(one.workload, one.pattern, machine, one.fields);
    const SimulationResult once = run(schedule, machine, Symmetry::on);
    EXPECT_LT(once.simulated_ranks, 8);
    const SimulationResult all = run_with_same_luck(schedule, machine, Symmetry::on);
    EXPECT_EQ(all.simulated_ranks, 8);
    expect_equal(once, all);
  }
}

TEST_P(SymmetricRun, IsTheFullRunWhereThereIsNoLuck) {
  const Case& one = GetParam();
  Machine machine = nodes_of_two("h200-8x8", 4);
  machine.fabric.arbitration_spread = 0;
  machine.gpu.matmul_spread = machine.gpu.attend_spread = 0;
  const Schedule schedule = schedule_of(one.workload, one.pattern, machine, one.fields);
  const SimulationResult once = run(schedule, machine, Symmetry::on);
  expect_equal(once, run(schedule, machine, Symmetry::off));
}

std::string name_of_case(const testing::TestParamInfo<Case>& one) {
  std::string text = std::string(one.param.workload) + "_" + std::string(one.param.pattern);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Workloads, SymmetricRun,
                         testing::Values(Case{"gemm-all-scatter", "bulk-synchronous", kProduct},
                                         Case{"gemm-all-scatter", "fused-sequential", kProduct},
                                         Case{"gemm-all-scatter", "producer-consumer", kProduct},
                                         Case{"gemm-all-scatter", "workgroup-specialised", kProduct},
                                         Case{"all-gather-gemm", "pull", kProduct},
                                         Case{"all-gather-gemm", "push", kProduct},
                                         Case{"all-to-all", "library", kMatrix}),
                         name_of_case);

// The same holds for GPUs of one node, also where hosts name streams, events and kernels by their peers.
class SymmetricRanks : public testing::TestWithParam<Case> {};

TEST_P(SymmetricRanks, AreTheFullRunWithTheSameLuck) {
  const Case& one = GetParam();
  for (const char* name : {"mi300x-8", "h200-8"}) {
    SCOPED_TRACE(name);
    Machine machine = find_machine(name);
    const Schedule schedule = schedule_of(one.workload, one.pattern, machine, one.fields);
    // Where launches take turns it is not the same: who stands for all is the last of them. And the slowest
    // of eight draws a worse share than one. Neither is much.
    const double full_ns = run(schedule, machine, Symmetry::off).makespan_ns;
    EXPECT_NEAR(run(schedule, machine, Symmetry::ranks).makespan_ns, full_ns, 0.15 * full_ns);
    machine.host.launch_turn_ns = 0;
    const SimulationResult once = run(schedule, machine, Symmetry::ranks);
    EXPECT_EQ(once.simulated_ranks, 1);
    const SimulationResult all = run_with_same_luck(schedule, machine, Symmetry::ranks);
    EXPECT_EQ(all.simulated_ranks, 8);
    expect_equal(once, all);
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, SymmetricRanks,
                         testing::Values(Case{"gemm-all-scatter", "bulk-synchronous", kProduct},
                                         Case{"gemm-all-scatter", "fused-sequential", kProduct},
                                         Case{"gemm-all-scatter", "producer-consumer", kProduct},
                                         Case{"gemm-all-scatter", "workgroup-specialised", kProduct},
                                         Case{"all-gather-gemm", "bulk-synchronous", kLarger},
                                         Case{"all-gather-gemm", "copy-engine", kLarger},
                                         Case{"all-gather-gemm", "pull", kLarger},
                                         Case{"all-gather-gemm", "push", kLarger},
                                         Case{"all-gather-gemm", "staged-fetchers", kLarger},
                                         Case{"gemm-reduce-scatter", "copy-engine", kLarger},
                                         Case{"gemm-all-reduce", "two-shot", kLarger},
                                         Case{"gemm-all-reduce", "fused-atomics", kProduct}),
                         name_of_case);

// Iterations that workgroups share make operands that overlap in part.
TEST(Symmetry, HoldsWhereWorkgroupsShareIterations) {
  for (const char* name : {"mi300x-8", "h200-8"}) {
    SCOPED_TRACE(name);
    Machine machine = find_machine(name);
    machine.host.launch_turn_ns = 0;
    const Given shared{{"sharing", static_cast<std::int64_t>(ProductSharing::stream_k)}};
    const Schedule schedule = schedule_of("gemm-all-scatter", "fused-sequential", machine,
                                          {{"m", 2048}, {"n", 9216}, {"k", 1024}}, shared);
    const SimulationResult once = run(schedule, machine, Symmetry::ranks);
    EXPECT_EQ(once.simulated_ranks, 1);
    expect_equal(once, run_with_same_luck(schedule, machine, Symmetry::ranks));
  }
}

// So do the runs without boundaries, whose dependences are alike as well.
TEST(Symmetry, HoldsWithoutBoundaries) {
  Machine machine = nodes_of_two("mi300x-8x8", 4);
  machine.fabric.arbitration_spread = 0;
  machine.gpu.matmul_spread = 0;
  const Schedule schedule = schedule_of("gemm-all-scatter", "bulk-synchronous", machine, kProduct);
  SimulationOptions options;
  options.counterfactual.dependences_for_barriers = true;
  options.symmetry = Symmetry::on;
  const SimulationResult once = simulate(schedule, machine, options);
  EXPECT_LT(once.simulated_ranks, 8);
  options.symmetry = Symmetry::off;
  expect_equal(once, simulate(schedule, machine, options));
}

TEST(Symmetry, OfRanksIsNotFoundWherePeersComeInTheOrderOfTheirNumbers) {
  const Machine machine = find_machine("mi300x-8");
  Problem problem = problem_of(find_workload("gemm-all-scatter", "test"));
  for (const auto& [name, value] : kProduct) problem.values.give(name, value);
  problem.values.give("gpus", 8);
  complete_problem(problem, "test");
  Values knobs = resolved_knobs(problem, machine, {});
  knobs.give("peer_order", static_cast<std::int64_t>(PeerOrder::fixed));
  const Schedule schedule =
      build_schedule(find_pattern(*problem.workload, "fused-sequential", "test"), problem, machine, knobs);
  EXPECT_FALSE(fold_ranks(schedule, machine).has_value());
}

TEST(Symmetry, IsNotFoundWhereTheLastRankHasLess) {
  const Machine machine = nodes_of_two("mi300x-8x8", 4);
  const Schedule schedule =
      schedule_of("gemm-all-scatter", "fused-sequential", machine, {{"m", 300}, {"n", 1001}, {"k", 200}});
  EXPECT_FALSE(fold_nodes(schedule, machine).has_value());
  const SimulationResult asked = run(schedule, machine, Symmetry::on);
  EXPECT_EQ(asked.simulated_ranks, 8);
  EXPECT_EQ(asked.makespan_ns, run(schedule, machine, Symmetry::off).makespan_ns);
}

TEST(Symmetry, IsNotFoundWhereOneRankIsTheRoot) {
  const Machine machine = nodes_of_two("mi300x-8x8", 4);
  for (const Pattern& pattern : find_workload("broadcast", "test").patterns) {
    const Schedule schedule = schedule_of("broadcast", pattern.name, machine, kMatrix);
    EXPECT_FALSE(fold_nodes(schedule, machine).has_value()) << pattern.name;
  }
}

TEST(Symmetry, IsNotFoundOnceACounterIsAnother) {
  const Machine machine = nodes_of_two("mi300x-8x8", 4);
  Schedule schedule = schedule_of("gemm-all-scatter", "producer-consumer", machine, kProduct);
  ASSERT_TRUE(fold_nodes(schedule, machine).has_value());
  Op* first = nullptr;
  for (Op& op : schedule.ops) {
    if (op.kind != OpKind::wait) continue;
    if (first == nullptr) {
      first = &op;
    } else if (op.index != first->index) {
      op.index = first->index;
      break;
    }
  }
  EXPECT_FALSE(fold_nodes(schedule, machine).has_value());
}

// On each of four ranks of two nodes two strips of X are read, `apart` rows from each other, the first from
// row `first` on. Whatever the rows, each operation is like those of the other ranks.
Schedule strips_apart(const std::vector<std::pair<std::int32_t, std::int32_t>>& first_and_apart) {
  constexpr std::int32_t kWidth = 128, kStrip = 32;
  ScheduleBuilder builder("strips", static_cast<int>(first_and_apart.size()));
  const std::int16_t x = builder.buffer({"X", DType::fp16, kWidth, kWidth, kWidth, kWidth});
  for (int rank = 0; rank < static_cast<int>(first_and_apart.size()); ++rank) {
    const auto& [first, apart] = first_and_apart[static_cast<std::size_t>(rank)];
    Kernel kernel;
    kernel.name = "strips";
    kernel.rank = rank;
    const std::int32_t id = builder.kernel(kernel);
    builder.workgroup(id);
    for (const std::int32_t row : {first, first + apart}) builder.load(x, {row, 0, kStrip, kWidth}, rank);
    builder.launch(rank, id);
    builder.host(rank, HostOpKind::device_synchronize);
  }
  return builder.finish();
}

// What the second strip has of the first is found in the caches; it begins in the same tile in any case.
TEST(Symmetry, IsNotFoundWhereRegionsOverlapInAnotherWay) {
  Machine machine = nodes_of_two("mi300x-8x8", 2);
  machine.fabric.arbitration_spread = 0;
  const auto folds = [&](const Schedule& schedule) { return fold_nodes(schedule, machine).has_value(); };
  EXPECT_TRUE(folds(strips_apart({{0, 16}, {0, 16}, {0, 16}, {0, 16}})));
  EXPECT_TRUE(folds(strips_apart({{0, 16}, {0, 24}, {8, 16}, {40, 24}})));  // further down, else the same
  const std::vector<std::pair<std::int32_t, std::int32_t>> other{{0, 16}, {0, 16}, {0, 16}, {0, 24}};
  EXPECT_FALSE(folds(strips_apart(other)));
  EXPECT_FALSE(folds(strips_apart({{0, 16}, {0, 16}, {0, 0}, {0, 16}})));   // twice the same
  EXPECT_FALSE(folds(strips_apart({{0, 16}, {0, 16}, {0, 32}, {0, 16}})));  // nothing in common
  // It would have been wrong: the last rank has to read 8 rows more.
  const Schedule schedule = strips_apart(other);
  const SimulationResult asked = run(schedule, machine, Symmetry::on);
  EXPECT_EQ(asked.simulated_ranks, 4);
  const SimulationResult full = run(schedule, machine, Symmetry::off);
  expect_equal(asked, full);
  std::vector<double> read(4);
  for (const CacheRow& row : full.caches)
    read[static_cast<std::size_t>(row.rank)] += row.traffic.hbm_read_bytes;
  EXPECT_EQ(read[3] - read[2], 8 * 128 * 2.0);
}

// On each of four ranks of two nodes two products over 64 iterations of K, the second `apart` iterations
// further on than the first.
Schedule products_apart(const std::vector<std::int32_t>& apart, std::int32_t first_of_last) {
  constexpr std::int32_t kSize = 64, kDepth = 256;
  ScheduleBuilder builder("products", static_cast<int>(apart.size()));
  const std::int16_t a = builder.buffer({"A", DType::fp16, kSize, kDepth, kSize, kSize});
  const std::int16_t b = builder.buffer({"B", DType::fp16, kDepth, kSize, kSize, kSize});
  for (int rank = 0; rank < static_cast<int>(apart.size()); ++rank) {
    Kernel kernel;
    kernel.name = "products";
    kernel.rank = rank;
    kernel.tile = {kSize, kSize, 32, 4};
    const std::int32_t id = builder.kernel(kernel);
    builder.workgroup(id);
    const std::int32_t first = rank + 1 == static_cast<int>(apart.size()) ? first_of_last : 0;
    for (const std::int32_t k : {first, first + apart[static_cast<std::size_t>(rank)]}) {
      builder.matmul(a, b, {0, 0, kSize, kSize}, k, k + 64);
    }
    builder.launch(rank, id);
    builder.host(rank, HostOpKind::device_synchronize);
  }
  return builder.finish();
}

// Half of the second product's operands is in the caches.
TEST(Symmetry, IsNotFoundWhereOperandsOverlapInAnotherWay) {
  const Machine machine = nodes_of_two("mi300x-8x8", 2);
  const auto folds = [&](const std::vector<std::int32_t>& apart, std::int32_t first_of_last) {
    return fold_nodes(products_apart(apart, first_of_last), machine).has_value();
  };
  EXPECT_TRUE(folds({32, 32, 32, 32}, 0));
  EXPECT_FALSE(folds({32, 32, 32, 16}, 0));   // more in common
  EXPECT_FALSE(folds({32, 32, 32, 64}, 0));   // nothing in common
  EXPECT_FALSE(folds({32, 32, 32, 32}, 96));  // further on: so the four have more operands in all
}

// Copy engines of the other node write over a part of what is read: of the first strip alone, or of both.
TEST(Symmetry, IsNotFoundWhereCopiesOverlapInAnotherWay) {
  const Machine machine = nodes_of_two("mi300x-8x8", 2);
  const auto folds = [&](std::int32_t row_of_last) {
    constexpr std::int32_t kWidth = 128, kStrip = 16;
    ScheduleBuilder builder("copies", 4);
    const std::int16_t x = builder.buffer({"X", DType::fp16, kWidth, kWidth, kStrip, kWidth});
    const std::int16_t y = builder.buffer({"Y", DType::fp16, kWidth, kWidth, kStrip, kWidth});
    for (int rank = 0; rank < 4; ++rank) {
      const int to = (rank + 2) % 4;
      builder.host_copy(rank, 0, x, {to == 3 ? row_of_last : 16, 0, kStrip, kWidth}, to, y, 0, 0, rank);
      Kernel kernel;
      kernel.name = "strips";
      kernel.rank = rank;
      const std::int32_t id = builder.kernel(kernel);
      builder.workgroup(id);
      for (const std::int32_t row : {0, 40}) builder.load(x, {row, 0, 64, kWidth}, rank);
      builder.launch(rank, id, 1);
      builder.host(rank, HostOpKind::device_synchronize);
    }
    return fold_nodes(builder.finish(), machine).has_value();
  };
  EXPECT_TRUE(folds(16));
  EXPECT_FALSE(folds(48));
}

// Leaves of two nodes: a shift by one node takes half of what stays under a leaf through the spine.
TEST(AlikeLinks, NeedLeavesToFallOnLeaves) {
  Machine machine = nodes_of_two("h200-8x8", 4);
  machine.network.nodes_per_leaf = 2;
  machine.network.uplink_share = 0.5;
  const Topology topology = build_topology(machine, 8);
  EXPECT_FALSE(alike_links(topology, 2).has_value());
  const auto links = alike_links(topology, 4);
  ASSERT_TRUE(links.has_value());
  for (const TopologyEdge& edge : topology.edges) {
    const auto like = static_cast<std::size_t>((*links)[static_cast<std::size_t>(edge.index)].first);
    EXPECT_LE(static_cast<int>(like), edge.index);
    EXPECT_EQ(topology.edges[like].raw_gb_per_s, edge.raw_gb_per_s);
  }
  const Schedule schedule = schedule_of("gemm-all-scatter", "fused-sequential", machine, kProduct);
  const SimulationResult once = run(schedule, machine, Symmetry::on);
  EXPECT_EQ(once.simulated_ranks, 4);
  expect_equal(once, run_with_same_luck(schedule, machine, Symmetry::on));
}

// Progress on the screen is an observer too.
TEST(Symmetry, SameLuckIsTheSameWhereSomebodyWatchesAllRanks) {
  struct Watch : SimulationObserver {
    std::size_t finished = 0;
    void op_finished(const OpPlace&, double) override { ++finished; }
  } watch;
  const Machine machine = nodes_of_two("mi300x-8x8", 4);
  const Schedule schedule = schedule_of("gemm-all-scatter", "fused-sequential", machine, kProduct);
  SimulationOptions options;
  options.seed = 3;
  options.symmetry = Symmetry::on;
  options.same_luck = true;
  options.observer = &watch;
  const SimulationResult watched = simulate(schedule, machine, options);
  EXPECT_EQ(watched.simulated_ranks, 8);
  EXPECT_EQ(watch.finished, schedule.ops.size());
  expect_equal(run(schedule, machine, Symmetry::on), watched);
  EXPECT_NE(watched.makespan_ns, run(schedule, machine, Symmetry::off).makespan_ns);
}

// Of machines of 16 GPUs and fewer every rank draws shares of its own.
TEST(Symmetry, IsLeftAloneInSmallRunsUnlessAskedFor) {
  const Machine machine = nodes_of_two("mi300x-8x8", 4);
  const Schedule schedule = schedule_of("gemm-all-scatter", "fused-sequential", machine, kProduct);
  const SimulationResult usual = run(schedule, machine, Symmetry::automatic);
  EXPECT_EQ(usual.simulated_ranks, 8);
  EXPECT_EQ(usual.makespan_ns, run(schedule, machine, Symmetry::off).makespan_ns);
}

}  // namespace
}  // namespace tritax
