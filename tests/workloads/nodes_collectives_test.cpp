// The vendors' collectives over several nodes: sound and right whatever the shape, with the bytes of a ring
// through every GPU, on rails, and no faster than what the NICs of a node carry.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "model/cost/kernel_rates.hpp"
#include "model/cost/nodes_cost.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

namespace sums = partial_sums_test;

Machine nodes_of(const char* name, int nodes, int gpus) {
  Machine machine = find_machine(name);
  machine.nodes = nodes;
  machine.gpus_per_node = gpus;
  machine.gpu.xcds = 1;
  machine.gpu.cus_per_xcd = 6;
  machine.library.channels = 3;
  return machine;
}

Problem matrix_on(const Machine& machine, std::string_view workload, std::int64_t rows, std::int64_t cols) {
  Problem problem = problem_of(find_workload(workload, "test"));
  problem.values.give("rows", rows);
  problem.values.give("cols", cols);
  problem.values.give("gpus", machine.gpu_count());
  complete_problem(problem, "test");
  return problem;
}

Schedule library_on(const Machine& machine, const Problem& problem) {
  return sums::built(find_pattern(*problem.workload, "library", "test"), problem, machine,
                     Values(problem.workload->knobs));
}

constexpr std::array kAlone{"all-gather", "reduce-scatter", "all-reduce", "all-to-all"};

TEST(NodesCollectives, AreSoundAndRightOnRaggedShapes) {
  constexpr std::array<std::pair<int, int>, 3> kGrids{{{2, 2}, {3, 2}, {2, 4}}};
  for (const char* name : {"mi300x-8x8", "h200-8x8"}) {
    for (const auto& [nodes, gpus] : kGrids) {
      const Machine machine = nodes_of(name, nodes, gpus);
      for (const char* workload : kAlone) {
        const Problem problem = matrix_on(machine, workload, 37, 19);
        const Pattern& library = find_pattern(*problem.workload, "library", "test");
        EXPECT_EQ(sums::what_is_wrong(library, problem, machine, Values(problem.workload->knobs)), "")
            << name << ' ' << nodes << 'x' << gpus << ' ' << workload;
      }
    }
  }
}

// What is wrong with three runs of a pattern over two nodes that hosts keep apart, or only flags do.
std::string wrong_over_nodes(const Problem& problem, const Machine& machine, const char* pattern,
                             bool host_barriers) {
  Values knobs(problem.workload->knobs);
  knobs.give("host_barriers", host_barriers);
  return sums::what_is_wrong(find_pattern(*problem.workload, pattern, "test"), problem, machine, knobs);
}

// Who reads what was gathered does not tell those who send again: those baselines need the hosts.
TEST(NodesCollectives, AreSoundAndRightAsThoseOfBaselines) {
  constexpr std::array<std::pair<const char*, bool>, 6> kNeedHosts{{{"gemm-all-reduce", false},
                                                                    {"gemm-reduce-scatter", false},
                                                                    {"gemm-all-to-all", false},
                                                                    {"gemm-all-reduce-norm", false},
                                                                    {"gemm-all-scatter", true},
                                                                    {"all-gather-gemm", true}}};
  const Machine machine = nodes_of("h200-8x8", 2, 2);
  for (const auto& [workload, needs_hosts] : kNeedHosts) {
    Problem problem = problem_of(find_workload(workload, "test"));
    problem.values.give("m", 67);
    problem.values.give("n", 130);
    problem.values.give("k", 48);
    problem.values.give("gpus", machine.gpu_count());
    complete_problem(problem, "test");
    EXPECT_EQ(wrong_over_nodes(problem, machine, "library", true), "") << workload;
    const std::string without = wrong_over_nodes(problem, machine, "library", false);
    EXPECT_EQ(!without.empty(), needs_hosts) << workload << ": " << without;
  }
}

TEST(NodesCollectives, WithNormsAreSoundAndRightByLibraryAndInOneShot) {
  const Machine machine = nodes_of("h200-8x8", 2, 2);
  const Problem problem = matrix_on(machine, "all-reduce-norm", 37, 50);
  for (const char* pattern : {"library", "one-shot"}) {
    for (const bool host_barriers : {false, true})
      EXPECT_EQ(wrong_over_nodes(problem, machine, pattern, host_barriers), "") << pattern << host_barriers;
  }
}

// Bytes that a rank stores to each other one.
std::map<std::pair<int, int>, double> stored_bytes(const Schedule& schedule) {
  std::map<std::pair<int, int>, double> bytes;
  for (const Kernel& kernel : schedule.kernels) {
    for (const Workgroup& workgroup : kernel.workgroups) {
      for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
        const Op& op = schedule.ops[workgroup.first_op + i];
        if ((op.kind != OpKind::store && op.kind != OpKind::copy) || op.rank == kernel.rank) continue;
        bytes[{kernel.rank, op.rank}] +=
            bytes_of(schedule.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
      }
    }
  }
  return bytes;
}

// What a GPU passes on in all, and what of it its NIC carries; blocks of the rows of one of W GPUs.
struct Passed {
  const char* workload;
  double blocks;
  double between;  // nodes
};

TEST(NodesCollectives, PassOnTheBytesOfARingAndStayOnTheirRails) {
  constexpr int kNodes = 3, kGpus = 4, kRanks = kNodes * kGpus;
  constexpr double kHanded = (kNodes - 1) * (kGpus - 1);
  const std::array<Passed, 4> expected{{
      {"all-gather", kRanks - 1, kNodes - 1},
      {"reduce-scatter", kRanks - 1, kNodes - 1},
      {"all-reduce", 2 * (kRanks - 1), 2 * (kNodes - 1)},
      {"all-to-all", kRanks - 1 + kHanded, (kNodes - 1) * kGpus},
  }};
  const Machine machine = nodes_of("h200-8x8", kNodes, kGpus);
  for (const Passed& row : expected) {
    const bool shards = std::string_view(row.workload) == "all-gather";  // which has rows of a shard
    const Problem problem = matrix_on(machine, row.workload, shards ? 8 : 8 * kRanks, 32);
    std::map<int, double> all, between;
    for (const auto& [ranks, bytes] : stored_bytes(library_on(machine, problem))) {
      const auto [from, to] = ranks;
      all[from] += bytes;
      if (from / kGpus == to / kGpus) continue;
      between[from] += bytes;
      EXPECT_EQ(from % kGpus, to % kGpus) << row.workload;
    }
    constexpr double kBlock = 8 * 32 * 2;
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(all[rank], row.blocks * kBlock) << row.workload << rank;
      EXPECT_EQ(between[rank], row.between * kBlock) << row.workload << rank;
    }
  }
}

// RCCL hands nothing over: blocks of an all-to-all go straight to their target.
TEST(NodesCollectives, OfAmdSendBlocksStraightToTheirTarget) {
  const Machine machine = nodes_of("mi300x-8x8", 2, 2);
  const auto bytes = stored_bytes(library_on(machine, matrix_on(machine, "all-to-all", 64, 32)));
  EXPECT_EQ(bytes.size(), 4U * 3U);
  for (const auto& row : bytes) EXPECT_EQ(row.second, 16 * 32 * 2);
}

// Law: a ring passes everything through the NICs of a node, so it takes as long as these need for it; what
// the steps cost is little beside 1 GiB.
TEST(NodesCollectives, OfLargeMatricesTakeWhatTheNicsOfANodeNeed) {
  Machine machine = find_machine("h200-8x8");
  machine.nodes = 2;
  machine.library.channel_gb_per_s = 100;
  const double nics_gb_per_s = 8 * machine.fabric.network_gb_per_s * machine.network.efficiency;
  const Problem problem = matrix_on(machine, "reduce-scatter", 65536, 8192);
  SimulationOptions options;
  options.symmetry = Symmetry::on;
  const double time_ns = simulate(library_on(machine, problem), machine, options).makespan_ns;
  const double ring_ns = work_of(problem).bytes_per_gpu / nics_gb_per_s;
  EXPECT_GT(time_ns, ring_ns);
  EXPECT_LT(time_ns, 1.5 * ring_ns);  // flags, and the first and the last chunk
}

TEST(NodesProtocol, TakesRingsOrTreesByStepsAndBytes) {
  Machine machine = nodes_of("h200-8x8", 8, 8);
  machine.library.channels = 10;
  LibraryCosts& library = machine.library;
  library.collective_start_ns = 20e3;
  library.channel_gb_per_s = 40;
  library.small_channel_gb_per_s = 0;
  library.small_step_ns = 1e3;
  machine.fabric.network_gb_per_s = 25;
  machine.fabric.network_latency_ns = 2e3;
  machine.network.efficiency = 1;
  const NodeGrid grid = node_grid(machine, 64);
  EXPECT_EQ(grid.nodes, 8);
  // An all-gather knows rings alone: 56 steps more than those of a node, 7 of them between nodes, and the
  // rate of 8 NICs.
  const CollectiveProtocol ring = protocol_of_nodes(machine, grid, 1, 10, false);
  EXPECT_DOUBLE_EQ(ring.start_ns, 20e3 + 56e3 + 7 * 2e3);
  EXPECT_DOUBLE_EQ(ring.channel_gb_per_s, 20);
  // Trees have fewer steps and a little less of the rate.
  const CollectiveProtocol few = protocol_of_nodes(machine, grid, 1, 10, true);
  EXPECT_DOUBLE_EQ(few.start_ns, 20e3 + 6e3 + 6 * 2e3);
  EXPECT_DOUBLE_EQ(few.channel_gb_per_s, 0.92 * 20);
  EXPECT_DOUBLE_EQ(protocol_of_nodes(machine, grid, 1e9, 10, true).start_ns, 20e3 + 112e3 + 14 * 2e3);
  // Between two nodes trees send half as much, and the NICs alone hold them back.
  EXPECT_DOUBLE_EQ(protocol_of_nodes(machine, node_grid(machine, 16), 1e9, 10, true).channel_gb_per_s, 40);
}

// Half of what NICs carry are flags where these travel in the words of the data, and the kernels know it.
TEST(NodesProtocol, CarriesFlagsOverNicsWhereTheyTravelInTheData) {
  Machine machine = nodes_of("h200-8x8", 8, 8);
  machine.library.channels = 10;
  LibraryCosts& library = machine.library;
  library.collective_start_ns = 1e6;  // nobody takes the other protocol
  library.channel_gb_per_s = 40;
  library.small_start_ns = 5e3;
  library.small_step_ns = 1e3;
  library.small_channel_gb_per_s = 40;
  machine.fabric.network_gb_per_s = 25;
  machine.fabric.network_latency_ns = 2e3;
  machine.network.efficiency = 1;
  const NodeGrid grid = node_grid(machine, 64);
  const CollectiveProtocol ring = protocol_of_nodes(machine, grid, 1, 10, false);
  EXPECT_DOUBLE_EQ(ring.start_ns, 5e3 + 6 * 1e3 + 56e3 + 7 * 2e3);
  EXPECT_DOUBLE_EQ(ring.channel_gb_per_s, 10);  // 8 NICs of 25 GB/s: 20 of words a channel
  EXPECT_EQ(ring.payload_share, kLowLatencyPayload);
  EXPECT_DOUBLE_EQ(protocol_of_nodes(machine, grid, 1, 10, true).channel_gb_per_s, 0.92 * 10);
  machine.gpu.cus_per_xcd = 10;
  for (const char* workload : {"all-gather", "all-reduce"}) {
    const Schedule schedule = library_on(machine, matrix_on(machine, workload, 64, 64));
    for (const Kernel& kernel : schedule.kernels)
      EXPECT_EQ(kernel_rates(machine, kernel).payload_share, 0.5) << workload;
  }
}

TEST(NodesProtocol, IsThatOfOneNodeWithoutWholeNodes) {
  const Machine machine = nodes_of("h200-8x8", 2, 8);
  EXPECT_FALSE(node_grid(machine, 8).several());
  EXPECT_FALSE(node_grid(machine, 12).several());
  EXPECT_TRUE(node_grid(machine, 16).several());
  EXPECT_FALSE(node_grid(nodes_of("h200-8x8", 4, 1), 4).several());  // rings have nothing to do within a node
}

}  // namespace
}  // namespace tritax
