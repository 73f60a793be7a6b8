// All-gather + GEMM: every pattern computes the product of every rank, whatever the shape, and the checker
// finds nothing; what a pattern is said to do, it does.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/workloads/all_gather_gemm/draft.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/draw.hpp"
#include "tests/workloads/repeated.hpp"

namespace tritax {
namespace {

Problem problem(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype, Sharding sharding, int gpus) {
  Problem problem = problem_of(all_gather_gemm());
  problem.values.give("m", m);
  problem.values.give("n", n);
  problem.values.give("k", k);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  problem.values.give("sharding", static_cast<std::int64_t>(sharding));
  problem.values.give("gpus", gpus);
  complete_problem(problem, "test");
  return problem;
}

Machine some_machine(int gpus) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = between(1, 4);
  machine.gpu.cus_per_xcd = between(2, 7);
  machine.library.channels = between(1, 9);
  EXPECT_GE(machine.gpu_count(), gpus);
  return machine;
}

Values some_knobs(const Machine& machine) {
  Values knobs(all_gather_gemm().knobs);
  knobs.give("tile_m", 16 * between(1, 4));
  knobs.give("tile_n", 16 * between(1, 4));
  knobs.give("tile_k", 16 * between(1, 2));
  const int cus = machine.gpu.cu_count();
  if (coin()) knobs.give("gemm_cus", between(1, cus - 1));
  if (coin())
    knobs.give("comm_cus",
               between(1, std::max<int>(1, cus - std::max<int>(1, static_cast<int>(knobs["gemm_cus"])))));
  knobs.give("k_steps", between(1, 4));
  knobs.give("stages", between(1, 5));
  knobs.give("chunks", between(1, 5));
  if (coin()) knobs.give("first_fetchers", between(1, 5));
  knobs.give("transport", between(0, 1));
  knobs.give("fetch", between(0, 1));
  knobs.give("streams", between(0, 1));
  knobs.give("group_m", between(1, 4));
  knobs.give("xcd_remap", coin());
  if (knobs["xcd_remap"] != 0 && coin()) knobs.give("xcd_chunk", between(1, 40));
  knobs.give("peer_order", between(0, 2));
  knobs.give("launch", between(0, 1));
  knobs.give("host_barriers", 1);  // a run must not begin before all ranks have ended the one before
  return knobs;
}

// What a user relies on: no finding, the right product on every rank, three times in a row.
void expect_sound_and_right(const Pattern& pattern, const Problem& asked, const Machine& machine,
                            const Values& knobs) {
  const Schedule schedule =
      repeated(build_schedule(pattern, asked, machine, resolved_knobs(asked, machine, knobs)), 3);
  const std::vector<Finding> findings = check_schedule(schedule);
  if (!findings.empty()) RC_LOG() << pattern.name << ": " << findings.front().message;
  RC_ASSERT(findings.empty());
  const FunctionalResult result = execute_functionally(schedule, machine, 7);
  if (!result.stale_reads.empty()) RC_LOG() << pattern.name << ": " << result.stale_reads.front();
  RC_ASSERT(result.stale_reads.empty());
  RC_ASSERT(result.max_relative_error < 1e-6);
}

RC_GTEST_PROP(AllGatherGemm, EveryPatternIsSoundAndRightOnRaggedShapes, ()) {
  const int gpus = between(1, 8);
  const auto sharding = static_cast<Sharding>(between(0, 1));
  const auto dtype = static_cast<DType>(between(0, kCommonDTypeCount - 1));
  const Problem asked =
      problem(gpus + between(0, 120), between(1, 90), gpus + between(0, 120), dtype, sharding, gpus);
  const Machine machine = some_machine(gpus);
  const Values knobs = some_knobs(machine);
  for (const Pattern& pattern : all_gather_gemm().patterns)
    expect_sound_and_right(pattern, asked, machine, knobs);
}

class EveryDType : public testing::TestWithParam<DType> {};

TEST_P(EveryDType, IsRightWithEveryPatternOnOneToEightRanks) {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;  // small, so that workgroups take turns
  machine.gpu.cus_per_xcd = 4;
  for (const int gpus : {1, 2, 3, 8}) {
    for (const Sharding sharding : {Sharding::rows, Sharding::k}) {
      const Problem asked = problem(70, 50, 90, GetParam(), sharding, gpus);
      Values knobs(all_gather_gemm().knobs);
      for (const char* side : {"tile_m", "tile_n", "tile_k"}) knobs.give(side, 32);
      knobs.give("k_steps", 1);
      knobs.give("host_barriers", 1);
      Values published = knobs;  // the forms of Iris, where they are not the usual ones
      published.give("fetch", 1);
      published.give("streams", 1);
      for (const Pattern& pattern : all_gather_gemm().patterns) {
        SCOPED_TRACE(std::string(pattern.name) + " on " + std::to_string(gpus));
        for (const Values& form : {knobs, published}) {
          const Schedule schedule =
              repeated(build_schedule(pattern, asked, machine, resolved_knobs(asked, machine, form)), 3);
          EXPECT_TRUE(check_schedule(schedule).empty());
          const FunctionalResult result = execute_functionally(schedule, machine, 3);
          EXPECT_TRUE(result.stale_reads.empty());
          EXPECT_LT(result.max_relative_error, 1e-6);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, EveryDType,
                         testing::Values(DType::fp32, DType::fp16, DType::bf16, DType::fp8));

Schedule built(std::string_view pattern, const Problem& asked, const Machine& machine, const Values& knobs) {
  return build_schedule(find_pattern(all_gather_gemm(), pattern, "test"), asked, machine,
                        resolved_knobs(asked, machine, knobs));
}

Values small_tiles() {
  Values knobs(all_gather_gemm().knobs);
  for (const char* side : {"tile_m", "tile_n", "tile_k"}) knobs.give(side, 32);
  knobs.give("k_steps", 1);
  return knobs;
}

// Bytes that each rank receives from others, by buffer-to-buffer copies.
std::map<int, double> received_bytes(const Schedule& schedule) {
  std::map<int, double> bytes;
  for (const auto* ops : {&schedule.ops, &schedule.transfers}) {
    for (const Op& op : *ops) {
      if (op.kind != OpKind::copy || op.rank == op.src_rank) continue;
      bytes[op.rank] += bytes_of(schedule.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
    }
  }
  return bytes;
}

TEST(AllGatherGemm, EveryRankReceivesWhatItLacksOnce) {
  const Machine machine = find_machine("mi300x-8");
  for (const Sharding sharding : {Sharding::rows, Sharding::k}) {
    const Problem asked = problem(256, 64, 256, DType::fp16, sharding, 4);
    for (const char* pattern : {"library", "bulk-synchronous", "push", "staged-fetchers", "copy-engine"}) {
      SCOPED_TRACE(pattern);
      const auto bytes = received_bytes(built(pattern, asked, machine, small_tiles()));
      ASSERT_EQ(bytes.size(), 4U);
      for (const auto& [rank, received] : bytes) EXPECT_EQ(received, 256 * 256 * 2 * 3 / 4);
    }
  }
}

// Workgroups that fetch may send instead: as many bytes, and a flag at every peer per block.
TEST(AllGatherGemm, StagedFetchersSendTheOwnPartInsteadOfLoadingThePeers) {
  const Machine machine = find_machine("mi300x-8");
  for (const Sharding sharding : {Sharding::rows, Sharding::k}) {
    const Problem asked = problem(256, 64, 256, DType::fp16, sharding, 4);
    Values knobs = small_tiles();
    knobs.give("transport", 1);
    const Schedule schedule = built("staged-fetchers", asked, machine, knobs);
    for (const Op& op : schedule.ops) {
      if (op.kind == OpKind::signal) {
        EXPECT_EQ(op.scope, Scope::system);
      }
    }
    for (const Kernel& kernel : schedule.kernels) {
      for (const Workgroup& workgroup : kernel.workgroups) {
        for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
          const Op& op = schedule.ops[workgroup.first_op + i];
          if (op.kind == OpKind::copy) {
            EXPECT_EQ(op.src_rank, kernel.rank);
          }
        }
      }
    }
    const auto bytes = received_bytes(schedule);
    ASSERT_EQ(bytes.size(), 4U);
    for (const auto& [rank, received] : bytes) EXPECT_EQ(received, 256 * 256 * 2 * 3 / 4);
  }
}

// Each of the ceil(N / tile_n) tiles of a row fetches the row again (ROCm/iris examples/14_all_gather_gemm).
TEST(AllGatherGemm, PullReceivesItForEveryColumnOfTiles) {
  const Machine machine = find_machine("mi300x-8");
  const Problem asked = problem(128, 96, 256, DType::fp16, Sharding::k, 4);
  const auto bytes = received_bytes(built("pull", asked, machine, small_tiles()));
  for (const auto& [rank, received] : bytes) EXPECT_EQ(received, 3 * (128 * 256 * 2 * 3 / 4));
}

// The products load the peers' parts themselves, each from its owner, again for every column of tiles: no
// copy and no private rows.
TEST(AllGatherGemm, PullIntoRegistersReadsEveryPartFromItsOwner) {
  const Machine machine = find_machine("mi300x-8");
  for (const Sharding sharding : {Sharding::rows, Sharding::k}) {
    const Problem asked = problem(128, 96, 256, DType::fp16, sharding, 4);
    Values knobs = small_tiles();
    knobs.give("fetch", 1);
    const Schedule schedule = built("pull", asked, machine, knobs);
    EXPECT_EQ(schedule.buffers.size(), 3U);
    std::map<int, double> bytes;
    for (const Kernel& kernel : schedule.kernels) {
      for (const Workgroup& workgroup : kernel.workgroups) {
        for (const Op& op : ops_of(schedule, workgroup)) {
          EXPECT_NE(op.kind, OpKind::copy);
          if (op.kind != OpKind::matmul) continue;
          const Region a = a_of(op, kernel.rank);
          const Rect slice = slice_of(all_gather_gemm_of(asked), a.rank);
          EXPECT_TRUE(a.rect.row >= slice.row && a.rect.row + a.rect.rows <= slice.row + slice.rows);
          EXPECT_TRUE(a.rect.col >= slice.col && a.rect.col + a.rect.cols <= slice.col + slice.cols);
          if (a.rank != kernel.rank) bytes[kernel.rank] += bytes_of(schedule.buffers[0], a.rect);
        }
      }
    }
    ASSERT_EQ(bytes.size(), 4U);
    for (const auto& [rank, received] : bytes) EXPECT_EQ(received, 3 * (128 * 256 * 2 * 3 / 4));
  }
}

// A tile whose rows two ranks have is computed in two parts.
TEST(AllGatherGemm, ATileOfTwoOwnersIsComputedInParts) {
  const Problem asked = problem(80, 32, 64, DType::fp16, Sharding::rows, 2);  // 40 rows each, tiles of 32
  Values knobs = small_tiles();
  knobs.give("fetch", 1);
  const Schedule schedule = built("pull", asked, find_machine("mi300x-8"), knobs);
  std::multiset<std::int32_t> rows;
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::store && op.rank == 0) rows.insert(op.rect.rows);
  }
  EXPECT_EQ(rows, (std::multiset<std::int32_t>{8, 16, 24, 32}));
}

// In one stream the GEMM follows the kernel that sends, on all compute units (ROCm/iris
// benchmark/examples/benchmark_all_gather_gemm_push.py); every block is sent by a workgroup of its own.
TEST(AllGatherGemm, APushInOneStreamComesBeforeTheGemm) {
  const Machine machine = find_machine("mi300x-8");
  const Problem asked = problem(256, 64, 256, DType::fp16, Sharding::k, 4);
  Values knobs = small_tiles();
  knobs.give("streams", 1);
  const Schedule schedule = built("push", asked, machine, knobs);
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<std::string> order;
    for_each_launch(schedule, schedule.host[static_cast<std::size_t>(rank)], [&](const GraphNode& node) {
      const Kernel& kernel = schedule.kernels[static_cast<std::size_t>(node.kernel)];
      EXPECT_EQ(node.stream, 0);
      order.push_back(kernel.name);
      if (kernel.name == "push") {
        EXPECT_EQ(kernel.workgroups.size(), 8U * 2);  // 256 × 64 of A in blocks of 32 × 32
      }
    });
    EXPECT_EQ(order, (std::vector<std::string>{"push", "gemm"}));
  }
}

TEST(AllGatherGemm, BeginsWithWhatIsThere) {
  const Machine machine = find_machine("mi300x-8");
  const Problem asked = problem(64, 32, 128, DType::fp16, Sharding::k, 4);
  Values knobs = small_tiles();
  knobs.give("peer_order", 1);
  const Schedule schedule = built("push", asked, machine, knobs);
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.name != "gemm" || kernel.workgroups.front().op_count == 0) continue;
    const Op& first = schedule.ops[kernel.workgroups.front().first_op];
    EXPECT_EQ(first.kind, OpKind::matmul);
    EXPECT_EQ(first.k_begin, 32 * kernel.rank);
  }
}

// A kernel of its own slice, and one for each piece of all peers behind their events.
TEST(AllGatherGemm, CopyEnginesFetchInPiecesAndKernelsFollowThem) {
  const Problem asked = problem(256, 64, 256, DType::fp16, Sharding::rows, 4);
  Values knobs = small_tiles();
  knobs.give("chunks", 2);
  const Schedule schedule = built("copy-engine", asked, find_machine("mi300x-8"), knobs);
  EXPECT_EQ(schedule.kernels.size(), 4U * 3);
  EXPECT_EQ(schedule.transfers.size(), 4U * 3 * 2);
  EXPECT_TRUE(schedule.flags.empty());
  for (const Op& op : schedule.ops) EXPECT_NE(op.kind, OpKind::copy);
}

TEST(AllGatherGemm, CopyEnginesThatTheMachineDoesNotKnowAreRefusedByName) {
  Machine machine = find_machine("mi300x-8");
  machine.copy_engine.gb_per_s = 0;
  const Problem asked = problem(256, 64, 256, DType::fp16, Sharding::rows, 4);
  try {
    built("copy-engine", asked, machine, small_tiles());
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("copy_engine.rate"), std::string::npos) << error.what();
  }
}

// Of 37 workgroups on each die the dispatcher leaves free a compute unit of another shader engine than the
// one whose turn it is. Tiles of 256x256 leave no room for a second workgroup on theirs.
TEST(AllGatherGemm, APushWhoseSendersWaitForThoseWhoWaitForThemIsRefused) {
  const Machine machine = find_machine("mi300x-8");
  const Problem asked = problem(8192, 16384, 1024, DType::fp16, Sharding::rows, 8);
  Values knobs(all_gather_gemm().knobs);
  knobs.give("k_steps", 4);
  knobs.give("gemm_cus", 296);
  knobs.give("comm_cus", 8);
  try {
    built("push", asked, machine, knobs);
    FAIL();
  } catch (const UserError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("some of 8 workgroups that send"), std::string::npos) << said;
    EXPECT_NE(said.find("beside 296 there is room for 0"), std::string::npos) << said;
  }
  knobs.give("gemm_cus", 288);
  SimulationOptions options;
  options.symmetry = Symmetry::ranks;
  EXPECT_GT(simulate(built("push", asked, machine, knobs), machine, options).makespan_ns, 0);
  // With far fewer tiles than workgroups most have nothing to do, and leave.
  knobs.give("gemm_cus", 296);
  const Problem few = problem(8192, 256, 1024, DType::fp16, Sharding::rows, 8);
  EXPECT_GT(simulate(built("push", few, machine, knobs), machine, options).makespan_ns, 0);
}

TEST(AllGatherGemm, IsRefusedWithFewerRowsThanGpus) {
  EXPECT_THROW(problem(3, 64, 64, DType::fp16, Sharding::rows, 4), UserError);
  EXPECT_THROW(problem(64, 64, 3, DType::fp16, Sharding::k, 4), UserError);
  EXPECT_NO_THROW(problem(3, 64, 64, DType::fp16, Sharding::k, 4));
}

TEST(AllGatherGemm, CountsTheFlopsOfAllRanks) {
  EXPECT_EQ(work_of(problem(10, 20, 30, DType::fp16, Sharding::rows, 4)).flops, 2.0 * 10 * 20 * 30 * 4);
}

}  // namespace
}  // namespace tritax
