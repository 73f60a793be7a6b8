#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "model/core/error.hpp"
#include "model/cost/kernel_rates.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/op_traits.hpp"
#include "tests/cost/example_machines.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

const GemmAllScatter kPaperShape{8192, 4608, 36864, DType::fp16, 8};  // arXiv:2511.12500 §5.2

Schedule build(std::string_view name, const GemmAllScatter& workload, const GemmKnobs& knobs,
               const Machine& machine = example::amd_node()) {
  return build(name, workload, machine, knobs);
}

const Kernel& kernel_of(const Schedule& schedule, int rank, std::string_view name) {
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.rank == rank && kernel.name == name) return kernel;
  }
  throw std::runtime_error("no kernel " + std::string(name));
}

int count(const Schedule& schedule, const Kernel& kernel, OpKind kind) {
  int sum = 0;
  for (const Workgroup& workgroup : kernel.workgroups) {
    for (const Op& op : ops_of(schedule, workgroup)) sum += op.kind == kind ? 1 : 0;
  }
  return sum;
}

std::vector<int> destinations(const Schedule& schedule, const Kernel& kernel, OpKind kind) {
  std::vector<int> ranks;
  for (const Op& op : ops_of(schedule, kernel.workgroups.front())) {
    if (op.kind == kind) ranks.push_back(op.rank);
  }
  return ranks;
}

template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Patterns, AreFiveWithTheLibraryFirst) {
  std::vector<std::string_view> names;
  for (const Pattern& pattern : gemm_all_scatter().patterns) names.push_back(pattern.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"library", "bulk-synchronous", "producer-consumer",
                                                  "fused-sequential", "workgroup-specialised"}));
}

TEST(FindPattern, OffersTheNearestNameAndListsAll) {
  EXPECT_EQ(message_of([] { find_pattern(gemm_all_scatter(), "fused-sequental", "--pattern"); }),
            "--pattern: unknown pattern 'fused-sequental', did you mean 'fused-sequential'?; the patterns "
            "are library, bulk-synchronous, producer-consumer, fused-sequential, workgroup-specialised");
}

TEST(TileCounts, AreThoseOfThePapersShapesAndTiles) {
  // ROCm/iris dataset/tiling.json: M = 8192.
  struct Row {
    std::int64_t n;
    int gpus, tile_m, tile_n, tiles;
  };
  const Row rows[] = {{4096, 2, 256, 256, 256},  {4096, 4, 256, 128, 256}, {4096, 8, 256, 128, 128},
                      {3584, 2, 256, 128, 448},  {3584, 4, 256, 128, 224}, {3584, 8, 256, 64, 224},
                      {4608, 2, 256, 256, 288},  {4608, 4, 256, 128, 288}, {4608, 8, 256, 64, 288},
                      {8192, 2, 256, 128, 1024}, {8192, 4, 256, 256, 256}, {8192, 8, 256, 128, 256}};
  for (const Row& row : rows) {
    GemmKnobs knobs;
    knobs.tile_m = row.tile_m;
    knobs.tile_n = row.tile_n;
    const Schedule schedule = build("fused-sequential", {8192, row.n, 512, DType::fp16, row.gpus}, knobs);
    for (int rank = 0; rank < row.gpus; ++rank) {
      EXPECT_EQ(count(schedule, kernel_of(schedule, rank, "gemm_scatter"), OpKind::matmul), row.tiles)
          << "N = " << row.n << " on " << row.gpus;
    }
  }
}

TEST(FusedSequential, StoresEveryTileOutOfRegistersToAllRanksInOrder) {
  GemmKnobs knobs;
  knobs.tile_n = 64;
  Schedule schedule = build("fused-sequential", kPaperShape, knobs);
  const Kernel& kernel = kernel_of(schedule, 3, "gemm_scatter");
  EXPECT_EQ(kernel.workgroups.size(), 304u);
  EXPECT_EQ(destinations(schedule, kernel, OpKind::store), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(count(schedule, kernel, OpKind::copy), 0);
  EXPECT_EQ(count(schedule, kernel, OpKind::wait), 0);

  knobs.peer_order = PeerOrder::rotated;
  schedule = build("fused-sequential", kPaperShape, knobs);
  EXPECT_EQ(destinations(schedule, kernel_of(schedule, 3, "gemm_scatter"), OpKind::store),
            (std::vector<int>{4, 5, 6, 7, 0, 1, 2, 3}));
}

TEST(Staggered, WorkgroupsOfARankBeginAtAllOfItsPeersInTurnAndEachServesAll) {
  GemmKnobs knobs;
  knobs.tile_n = 64;
  knobs.peer_order = PeerOrder::staggered;
  for (const auto& [name, kernel_name, kind, last] :
       {std::tuple{"fused-sequential", "gemm_scatter", OpKind::store, true},
        std::tuple{"bulk-synchronous", "scatter", OpKind::copy, false},
        std::tuple{"producer-consumer", "scatter", OpKind::copy, false}}) {
    const Schedule schedule = build(name, kPaperShape, knobs);
    const Kernel& kernel = kernel_of(schedule, 3, kernel_name);
    const std::vector<int> rotated{4, 5, 6, 7, 0, 1, 2};
    for (std::size_t w = 0; w < 14; ++w) {
      std::vector<int> order;
      for (const Op& op : ops_of(schedule, kernel.workgroups[w])) {
        if (op.kind == kind) order.push_back(op.rank);
      }
      order.resize(last ? 8 : 7);
      std::vector<int> expected = rotated;
      std::rotate(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(w % 7), expected.end());
      if (last) expected.push_back(3);  // its own comes last
      EXPECT_EQ(order, expected) << name << " workgroup " << w;
    }
  }
}

TEST(FusedSequential, StartsEveryDieOnAContiguousRangeOfTiles) {
  GemmKnobs knobs;
  knobs.tile_n = 128;
  const Schedule schedule = build("fused-sequential", {8192, 4096, 512, DType::fp16, 8}, knobs);
  const Kernel& kernel = kernel_of(schedule, 0, "gemm_scatter");
  const Op matmul = ops_of(schedule, kernel.workgroups[9]).front();  // tile 39 is (9, 2): the worked example
  EXPECT_EQ(matmul.rect.row, 9 * 256);
  EXPECT_EQ(matmul.rect.col, 2 * 128);
}

TEST(BulkSynchronous, RunsTwoFullGridsInOneStreamWithoutFlags) {
  GemmKnobs knobs;
  knobs.tile_n = 64;
  const Schedule schedule = build("bulk-synchronous", kPaperShape, knobs);
  EXPECT_TRUE(schedule.flags.empty());
  EXPECT_EQ(kernel_of(schedule, 5, "gemm").workgroups.size(), 304u);
  EXPECT_EQ(kernel_of(schedule, 5, "scatter").workgroups.size(), 304u);
  EXPECT_EQ(count(schedule, kernel_of(schedule, 5, "scatter"), OpKind::copy), 288 * 7);
  std::set<int> streams;
  for (const HostOp& op : schedule.host[5]) {
    if (op.kind == HostOpKind::launch) streams.insert(op.stream);
  }
  EXPECT_EQ(streams, std::set<int>{0});
}

TEST(ProducerConsumer, SplitsAtThePowerOfTwoAndUsesTwoStreams) {
  GemmKnobs knobs;
  knobs.tile_n = 64;
  Schedule schedule = build("producer-consumer", kPaperShape, knobs);
  EXPECT_EQ(kernel_of(schedule, 0, "gemm").workgroups.size(), 256u);
  EXPECT_EQ(kernel_of(schedule, 0, "scatter").workgroups.size(), 48u);
  EXPECT_EQ(schedule.flags[0].count, 288);
  std::vector<int> streams;
  for (const HostOp& op : schedule.host[0]) {
    if (op.kind == HostOpKind::launch) streams.push_back(op.stream);
  }
  EXPECT_EQ(streams, (std::vector<int>{0, 1}));

  knobs.waves = 4;
  schedule = build("producer-consumer", kPaperShape, knobs, example::nvidia_node());
  EXPECT_EQ(kernel_of(schedule, 0, "gemm").workgroups.size(), 128u);
  EXPECT_EQ(kernel_of(schedule, 0, "scatter").workgroups.size(), 4u);
}

TEST(ProducerConsumer, KeepsCusForCommunicationWhenTheCuCountIsAPowerOfTwo) {
  Machine machine = example::amd_node();
  machine.gpu.cus_per_xcd = 32;
  const Schedule schedule = build("producer-consumer", kPaperShape, GemmKnobs{}, machine);
  EXPECT_EQ(kernel_of(schedule, 0, "gemm").workgroups.size(), 224u);
  EXPECT_EQ(kernel_of(schedule, 0, "scatter").workgroups.size(), 32u);
}

TEST(ProducerConsumer, GivesTheRestOfTheCusToTheRoleThatTheUserLeftOpen) {
  GemmKnobs knobs;
  knobs.comm_cus = 100;  // up to 13 on each of 8 dies, which leave 25 of 38 compute units
  Schedule schedule = build("producer-consumer", kPaperShape, knobs);
  EXPECT_EQ(kernel_of(schedule, 0, "gemm").workgroups.size(), 200u);
  EXPECT_TRUE(check_schedule_on(schedule, example::amd_node()).empty());
  const Schedule one_kernel = build("workgroup-specialised", kPaperShape, knobs);
  EXPECT_EQ(one_kernel.kernels.at(0).workgroups.size(), 304u);
  knobs.comm_cus = 0;
  knobs.gemm_cus = 300;
  schedule = build("producer-consumer", kPaperShape, knobs);
  EXPECT_EQ(kernel_of(schedule, 0, "scatter").workgroups.size(), 4u);
}

TEST(ProducerConsumer, SendsSmallerTilesAfterTheirGemmTileAndLargerOnesAfterAllOfTheirs) {
  GemmKnobs knobs;
  knobs.comm_tile_m = 128;
  Schedule schedule =
      build("producer-consumer", {1024, 2048, 64, DType::fp16, 2}, knobs);  // 4 × 4 GEMM tiles a rank
  EXPECT_EQ(count(schedule, kernel_of(schedule, 1, "scatter"), OpKind::copy), 32);
  EXPECT_EQ(count(schedule, kernel_of(schedule, 1, "scatter"), OpKind::wait), 32);
  knobs.comm_tile_m = 512;
  knobs.comm_tile_n = 1024;
  schedule = build("producer-consumer", {1024, 2048, 64, DType::fp16, 2}, knobs);
  EXPECT_EQ(count(schedule, kernel_of(schedule, 1, "scatter"), OpKind::copy), 2);
  EXPECT_EQ(count(schedule, kernel_of(schedule, 1, "scatter"), OpKind::wait), 16);
}

TEST(WorkgroupSpecialised, SplitsRolesAfterTheRemapSoThatTheLastDiesCommunicate) {
  // 48 of 304 workgroups: 10 of die 6 and all 38 of die 7.
  GemmKnobs knobs;
  knobs.tile_n = 64;
  Schedule schedule = build("workgroup-specialised", kPaperShape, knobs);
  const auto communicating_of_die = [&] {
    const Kernel& kernel = kernel_of(schedule, 2, "specialised");
    std::vector<int> count_of_die(8, 0);
    for (std::size_t p = 0; p < kernel.workgroups.size(); ++p) {
      const std::span<const Op> ops = ops_of(schedule, kernel.workgroups[p]);
      if (ops.front().kind != OpKind::matmul) ++count_of_die[p % 8];
    }
    return count_of_die;
  };
  EXPECT_EQ(communicating_of_die(), (std::vector<int>{0, 0, 0, 0, 0, 0, 10, 38}));
  knobs.xcd_remap = false;
  schedule = build("workgroup-specialised", kPaperShape, knobs);
  EXPECT_EQ(communicating_of_die(), (std::vector<int>(8, 6)));
}

TEST(WorkgroupSpecialised, EndsWithFlagsToAndFromEveryPeer) {
  GemmKnobs knobs;
  knobs.tile_n = 64;
  knobs.lock = LockProtocol::compare_and_swap;
  const Schedule schedule = build("workgroup-specialised", kPaperShape, knobs);
  const std::span<const Op> ops =
      ops_of(schedule, kernel_of(schedule, 2, "specialised").workgroups[7]);  // p' = 266, q = 10
  ASSERT_GE(ops.size(), 15u);
  EXPECT_EQ(ops[ops.size() - 15].kind, OpKind::barrier);
  const int peers[] = {0, 1, 3, 4, 5, 6, 7};
  for (std::size_t i = 0; i < 7; ++i) {
    const Op& signal = ops[ops.size() - 14 + i];
    EXPECT_EQ(signal.kind, OpKind::signal);
    EXPECT_EQ(signal.rank, peers[i]);
    EXPECT_EQ(signal.index, 10 * 8 + 2);
    EXPECT_EQ(signal.scope, Scope::system);
    EXPECT_EQ(signal.protocol, LockProtocol::compare_and_swap);
    const Op& wait = ops[ops.size() - 7 + i];
    EXPECT_EQ(wait.kind, OpKind::wait);
    EXPECT_EQ(wait.index, 10 * 8 + peers[i]);
    EXPECT_EQ(wait.scope, Scope::system);
    EXPECT_EQ(wait.protocol, LockProtocol::load_store);
  }
}

TEST(WorkgroupSpecialised, TakesTheRegistersOfTheWorseRole) {
  GemmKnobs knobs;
  knobs.tile_m = knobs.tile_n = 16;
  knobs.tile_k = 16;
  const Resources gemm = matmul_resources(example::amd_node().gpu, KernelCosts{}, DType::fp16,
                                          {16, 16, 16, 8, Pipeline::serial});
  ASSERT_LT(gemm.registers_per_thread, 64);
  const Schedule schedule = build("workgroup-specialised", {64, 64, 64, DType::fp16, 2}, knobs);
  EXPECT_EQ(schedule.kernels[0].resources.registers_per_thread, 64);
  EXPECT_EQ(schedule.kernels[0].resources.threads, 512);
}

// 500 for the 64 elements that each of 256 threads has of a tile of 128x128, as far as threads and compute
// units have them.
TEST(ScatterKernels, TakeRegistersForEveryElementOfATileWhereTheMachineSaysSo) {
  Machine machine = example::amd_node();
  machine.gpu.copy_registers = 500;
  const auto registers = [&](std::int32_t m, std::int32_t n, const char* pattern, const char* kernel) {
    GemmKnobs knobs = default_gemm_knobs(machine, DType::fp16);
    knobs.comm_tile_m = m;
    knobs.comm_tile_n = n;
    return kernel_of(build(pattern, kPaperShape, knobs, machine), 0, kernel).resources.registers_per_thread;
  };
  EXPECT_EQ(registers(128, 128, "producer-consumer", "scatter"), 500);
  EXPECT_EQ(registers(128, 128, "bulk-synchronous", "scatter"), 500);
  EXPECT_EQ(registers(128, 64, "producer-consumer", "scatter"), 250);
  EXPECT_EQ(registers(16, 16, "producer-consumer", "scatter"), 64);
  EXPECT_EQ(registers(256, 256, "producer-consumer", "scatter"), 512);
  EXPECT_EQ(registers(128, 128, "workgroup-specialised", "specialised"), 250);  // of 512 threads
  EXPECT_EQ(registers(256, 256, "workgroup-specialised", "specialised"), 256);  // all of a compute unit
  machine.gpu.copy_registers = 0;
  EXPECT_EQ(registers(128, 128, "producer-consumer", "scatter"), 64);
}

TEST(Library, SynchronisesTheHostBetweenGemmAndCollectiveAndCopiesIntoPlaceWhereCalledEagerly) {
  Values knobs = values_of(GemmKnobs{});
  knobs.give("form", static_cast<std::int64_t>(CallForm::eager_slices));
  const Schedule schedule = build_schedule(find_pattern(gemm_all_scatter(), "library", "test"),
                                           problem_of(kPaperShape), example::amd_node(), knobs);
  std::vector<HostOpKind> kinds;
  std::vector<std::string> work;
  for (const HostOp& op : schedule.host[4]) {
    kinds.push_back(op.kind);
    if (op.kind == HostOpKind::host_work) work.push_back(op.label);
  }
  EXPECT_EQ(work, (std::vector<std::string>{"framework_sync", "framework_gather", "collective_call"}));
  EXPECT_EQ(kinds,
            (std::vector<HostOpKind>{HostOpKind::barrier, HostOpKind::launch, HostOpKind::stream_synchronize,
                                     HostOpKind::host_work, HostOpKind::host_work, HostOpKind::host_work,
                                     HostOpKind::launch, HostOpKind::launch, HostOpKind::stream_synchronize,
                                     HostOpKind::device_synchronize, HostOpKind::barrier}));
  const Kernel& gather = kernel_of(schedule, 4, "all_gather");
  EXPECT_EQ(gather.workgroups.size(), 16u);
  EXPECT_EQ(kernel_rates(example::amd_node(), gather).remote_store_gb_per_s, 10);
  for (const Workgroup& channel : gather.workgroups) EXPECT_LE(channel.op_count, 8u * 8 + 1 + 14);
}

TEST(Library, IgnoresTheKnobsOfTheKernelsThatAUserWrites) {
  GemmKnobs other;
  other.tile_m = 16;
  other.waves = 1;
  other.group_m = 1;
  other.launch = LaunchMode::graph;
  other.xcd_remap = false;
  const Schedule x = build("library", kPaperShape, GemmKnobs{});
  const Schedule y = build("library", kPaperShape, other);
  EXPECT_EQ(x.kernels[0].tile.m, y.kernels[0].tile.m);
  EXPECT_EQ(x.kernels[0].tile.waves, y.kernels[0].tile.waves);
  EXPECT_EQ(x.ops.size(), y.ops.size());
  EXPECT_TRUE(y.graphs.empty());
}

TEST(Library, PicksTilesThatFillTheGpu) {
  // 256×256 tiles of 4096×1216 would occupy 80 of 304 CUs; 256×64 tiles occupy all of them in one wave.
  const Schedule wide = build("library", {4096, 1216 * 8, 4096, DType::fp16, 8}, GemmKnobs{});
  EXPECT_EQ(wide.kernels[0].tile.m * wide.kernels[0].tile.n, 256 * 64);
  EXPECT_EQ(wide.kernels[0].workgroups.size(), 304u);
  // The shape of AMD's peak measurement: 16 × 19 tiles of 256×256 are one full wave.
  const Schedule square = build("library", {4096, 4864 * 8, 4096, DType::fp16, 8}, GemmKnobs{});
  EXPECT_EQ(square.kernels[0].tile.m, 256);
  EXPECT_EQ(square.kernels[0].tile.n, 256);
}

TEST(Library, CopiesTheOwnBlockAsWellAndKeepsThePaceOfAChannelOnLinksOnly) {
  const Schedule schedule = build("library", kPaperShape, GemmKnobs{});
  const Kernel& gather = kernel_of(schedule, 2, "all_gather");
  double own = 0;
  for (const Workgroup& channel : gather.workgroups) {
    for (std::uint32_t o = channel.first_op; o < channel.first_op + channel.op_count; ++o) {
      const Op& op = schedule.ops[o];
      if (op.kind == OpKind::copy && op.rank == 2) {
        own += bytes_of(schedule.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
      }
    }
  }
  EXPECT_EQ(own, static_cast<double>(kPaperShape.m) * static_cast<double>(kPaperShape.n) / 8 * 2);
  EXPECT_EQ(kernel_rates(example::amd_node(), gather).workgroup_gb_per_s, 0);
}

TEST(Library, SplitsADeepProductOfFewTilesAlongKAndAddsThePartsUp) {
  const Schedule schedule = build("library", {64, 256, 1 << 16, DType::fp16, 1}, GemmKnobs{});
  ASSERT_EQ(schedule.kernels.size(), 2u);
  EXPECT_EQ(schedule.kernels[1].name, "library_add_parts");
  std::int64_t depth = 0;  // of the first tile, over its parts
  const Op& first = schedule.ops[schedule.kernels[0].workgroups[0].first_op];
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::matmul && op.rect.row == first.rect.row && op.rect.col == first.rect.col) {
      depth += op.k_end - op.k_begin;
    }
  }
  EXPECT_EQ(depth, 1 << 16);
  EXPECT_EQ(build("library", {4096, 4096, 1 << 14, DType::fp16, 1}, GemmKnobs{}).kernels.size(), 1u);
}

TEST(Library, TakesTheProtocolForSmallMessagesOnlyWhileItIsFaster) {
  Machine machine = example::amd_node();
  machine.library.collective_start_ns = 20e3;
  machine.library.small_start_ns = 5e3;
  machine.library.small_channel_gb_per_s = machine.library.channel_gb_per_s / 4;
  const auto pace_of = [&](std::int64_t m) {
    const Schedule schedule = build("library", {m, 1024, 1024, DType::fp16, 8}, GemmKnobs{}, machine);
    const Kernel& gather = kernel_of(schedule, 0, "all_gather");
    const KernelRates rates = kernel_rates(machine, gather);
    return std::pair{rates.start_ns, rates.remote_store_gb_per_s};
  };
  EXPECT_EQ(pace_of(64), (std::pair{5e3, machine.library.small_channel_gb_per_s}));
  EXPECT_EQ(pace_of(1 << 16), (std::pair{20e3, machine.library.channel_gb_per_s}));
}

TEST(Library, TakesOneProtocolThoughBlocksDiffer) {
  Machine machine = example::amd_node();
  machine.library.collective_start_ns = 20e3;
  machine.library.small_start_ns = 5e3;
  machine.library.small_channel_gb_per_s = machine.library.channel_gb_per_s / 4;
  for (std::int64_t m = 256; m < 8192; m += 256) {
    const Schedule schedule = build("library", {m, 1025, 256, DType::fp16, 8}, GemmKnobs{}, machine);
    EXPECT_EQ(kernel_of(schedule, 0, "all_gather").library, kernel_of(schedule, 7, "all_gather").library)
        << m;
  }
}

TEST(Library, IsSlowWithRowsOffSixteenBytesWhereCopiesNeedThem) {
  Machine machine = example::nvidia_node();
  const auto share_of = [&](std::int64_t n, std::int64_t k, DType dtype) {
    const Schedule schedule = build("library", {1024, n, k, dtype, 2}, GemmKnobs{}, machine);
    return kernel_rates(machine, schedule.kernels[0]).matmul_share;
  };
  EXPECT_EQ(share_of(2 * 1025, 1024, DType::fp16), 1);
  machine.library.odd_row_share = 0.2;
  machine.library.even_row_share = 0.3;
  EXPECT_EQ(share_of(2 * 1024, 1024, DType::fp16), 1);
  EXPECT_EQ(share_of(2 * 1032, 1032, DType::fp16), 1);
  EXPECT_EQ(share_of(2 * 1025, 1024, DType::fp16), 0.2);
  EXPECT_EQ(share_of(2 * 1025, 1026, DType::fp16), 0.2);
  EXPECT_EQ(share_of(2 * 1024 + 1, 1024, DType::fp16), 0.2);  // of one rank
  EXPECT_EQ(share_of(2 * 1024, 1025, DType::fp16), 0.2);
  EXPECT_EQ(share_of(2 * 1026, 1024, DType::fp16), 0.3);
  EXPECT_EQ(share_of(2 * 1024, 1028, DType::fp16), 0.3);
  EXPECT_EQ(share_of(2 * 1025, 1024, DType::fp8), 1);  // there is no such kernel
}

TEST(Library, HasOneKernelForTheDeepFp32ShapesThatHipBlasLtHasNotTuned) {
  const auto tile_of = [](std::int64_t k, DType dtype, std::string_view arch) {
    Machine machine = example::amd_node();
    machine.gpu.arch = arch;
    return build("library", {8192, 4608, k, dtype, 8}, GemmKnobs{}, machine).kernels[0].tile;
  };
  const MatmulTile deep = tile_of(36864, DType::fp32, "gfx942");
  EXPECT_EQ((std::vector<int>{deep.m, deep.n, deep.k, deep.waves}), (std::vector<int>{64, 256, 16, 4}));
  EXPECT_NE(tile_of(4096, DType::fp32, "gfx942").n, 256);
  EXPECT_NE(tile_of(36864, DType::fp16, "gfx942").n, 256);
  EXPECT_NE(tile_of(36864, DType::fp32, "gfx90a").n, 256);
}

TEST(LaunchMode, GraphPutsAllKernelsOfARankIntoOneHostCall) {
  GemmKnobs knobs;
  knobs.launch = LaunchMode::graph;
  const Schedule schedule = build("producer-consumer", kPaperShape, knobs);
  ASSERT_EQ(schedule.graphs.size(), 8u);
  EXPECT_EQ(schedule.graphs[0].size(), 2u);
  EXPECT_EQ(schedule.graphs[0][1].stream, 1);
  EXPECT_EQ(std::count_if(schedule.host[0].begin(), schedule.host[0].end(),
                          [](const HostOp& op) { return op.kind == HostOpKind::launch; }),
            0);
}

TEST(Patterns, SendToPeersInTheOrderOfTheKnob) {
  GemmKnobs knobs;
  knobs.tile_n = 64;
  for (const std::string_view name : {"bulk-synchronous", "producer-consumer"}) {
    knobs.peer_order = PeerOrder::fixed;
    Schedule schedule = build(name, kPaperShape, knobs);
    std::vector<int> order = destinations(schedule, kernel_of(schedule, 3, "scatter"), OpKind::copy);
    order.resize(7);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 4, 5, 6, 7})) << name;
    knobs.peer_order = PeerOrder::rotated;
    schedule = build(name, kPaperShape, knobs);
    order = destinations(schedule, kernel_of(schedule, 3, "scatter"), OpKind::copy);
    order.resize(7);
    EXPECT_EQ(order, (std::vector<int>{4, 5, 6, 7, 0, 1, 2})) << name;
  }
}

TEST(DefaultKnobs, BuildEveryPatternOnEveryMachineAndDtype) {
  for (const Machine& machine : {example::amd_node(), example::nvidia_node()}) {
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
      if (machine.gpu.rate(dtype).flop_per_clk_per_cu == 0) continue;
      for (const Pattern& pattern : gemm_all_scatter().patterns) {
        EXPECT_NO_THROW(
            build(pattern, {1000, 999, 500, dtype, 8}, machine, default_gemm_knobs(machine, dtype)))
            << pattern.name << " " << name_of(dtype) << " on " << machine.gpu.name;
      }
    }
  }
}

}  // namespace
}  // namespace tritax
