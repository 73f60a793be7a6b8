// Attention backward in schedules: its gradients, its checks and its time.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <string>

#include "model/cost/attend_backward_cost.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/builder.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/operations.hpp"
#include "sim/functional.hpp"
#include "sim/functional_attention.hpp"
#include "sim/simulate.hpp"
#include "tests/schedule/random_schedule.hpp"

namespace tritax {
namespace {

struct Head {
  Eigen::MatrixXd q, kv, d_out;
  std::optional<VisibleKeys> visible;

  Eigen::MatrixXd partial() const {
    const Eigen::Index d = q.cols();
    return attention_partial(q, kv.leftCols(d), kv.rightCols(d), visible);
  }
  // What the gradients belong to: Σ dO∘O.
  double loss() const { return partial().leftCols(q.cols()).cwiseProduct(d_out).sum(); }
  AttentionGradients gradients() const {
    const Eigen::MatrixXd results = partial();
    Eigen::MatrixXd statistics(q.rows(), 2);
    statistics.col(0) = results.rightCols(1);
    statistics.col(1) = results.leftCols(q.cols()).cwiseProduct(d_out).rowwise().sum();
    std::optional<std::int64_t> first;
    if (visible) first = visible->first;
    return attention_gradients(q, kv, d_out, statistics, first);
  }
};

RC_GTEST_PROP(AttentionGradients, AreTheSlopesOfTheForwardPass, ()) {
  const int rows = *rc::gen::inRange(1, 6), keys = *rc::gen::inRange(1, 6), depth = *rc::gen::inRange(1, 4);
  std::srand(static_cast<unsigned>(*rc::gen::inRange(0, 1000)));
  Head head{Eigen::MatrixXd::Random(rows, depth), Eigen::MatrixXd::Random(keys, 2 * depth),
            Eigen::MatrixXd::Random(rows, depth), std::nullopt};
  if (*rc::gen::inRange(0, 2) == 1) head.visible = VisibleKeys{*rc::gen::inRange(1, 4), 1};
  const AttentionGradients gradients = head.gradients();
  const auto check = [&](Eigen::MatrixXd& values, const Eigen::MatrixXd& slopes) {
    constexpr double kStep = 1e-5;
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      double& value = values.data()[i];
      const double kept = value;
      value = kept + kStep;
      const double above = head.loss();
      value = kept - kStep;
      const double below = head.loss();
      value = kept;
      RC_ASSERT(std::abs((above - below) / (2 * kStep) - slopes.data()[i]) < 1e-7);
    }
  };
  check(head.q, gradients.q);
  check(head.kv, gradients.kv);
}

// One head of keys, two heads of queries; one workgroup per block of 16 keys.
struct BackwardDraft {
  ScheduleBuilder builder{"backward", 1};
  ScheduleBuilder::BackwardBuffers buffers;
  std::int16_t d_kv = 0;
  std::int32_t kernel = 0;
  static constexpr int kTokens = 48, kDepth = 16, kHeads = 2;

  explicit BackwardDraft(DType sums = DType::fp32) {
    const auto add = [&](const char* name, DType dtype, int cols) {
      return builder.buffer({name, dtype, kTokens, cols, 16, kDepth});
    };
    buffers.q = add("Q", DType::fp16, kHeads * kDepth);
    buffers.kv = add("KV", DType::fp16, 2 * kDepth);
    buffers.d_out = add("dO", DType::fp16, kHeads * kDepth);
    buffers.statistics = add("statistics", DType::fp32, 2 * kHeads);
    buffers.d_q = add("dQ", sums, kHeads * kDepth);
    d_kv = add("dKV", DType::fp16, 2 * kDepth);
    for (const std::int16_t buffer : {buffers.q, buffers.kv, buffers.d_out, buffers.statistics})
      builder.input(builder.whole(buffer));
    builder.input(builder.whole(buffers.d_q), InputValues::zero);
    Kernel of;
    of.name = "backward";
    of.tile = {16, 16, kDepth, 4, Pipeline::overlapped};
    kernel = builder.kernel(of);
    builder.launch(0, kernel);
  }
  Schedule finish() {
    builder.host(0, HostOpKind::device_synchronize);
    return builder.finish();
  }
};

std::string first_finding(const Schedule& schedule) {
  const std::vector<Finding> findings = check_schedule(schedule);
  return findings.empty() ? "" : findings.front().message;
}

RC_GTEST_PROP(AttendBackward, AddsUpTheSameOverAnyCutOfTheQueries, ()) {
  BackwardDraft draft;
  const int limit = *rc::gen::inRange(0, 3);
  const Rect all{0, 0, BackwardDraft::kTokens, 2 * BackwardDraft::kDepth};
  for (int row = 0; row < BackwardDraft::kTokens; row += 16) {
    const Rect keys{row, 0, 16, 2 * BackwardDraft::kDepth};
    draft.builder.workgroup(draft.kernel);
    for (int head = 0; head < BackwardDraft::kHeads; ++head) {
      for (int begin = 0; begin < BackwardDraft::kTokens;) {
        const int end = std::min(BackwardDraft::kTokens, begin + *rc::gen::inRange(1, 40));
        draft.builder.attend_backward(draft.buffers, keys, head * BackwardDraft::kDepth, begin, end, limit);
        begin = end;
      }
    }
    draft.builder.store(draft.d_kv, keys, 0);
  }
  for (int head = 0; head < BackwardDraft::kHeads; ++head) {
    const Rect queries{0, head * BackwardDraft::kDepth, BackwardDraft::kTokens, BackwardDraft::kDepth};
    const Region statistics{draft.buffers.statistics, 0, {0, 2 * head, BackwardDraft::kTokens, 2}};
    const auto expect = [&](Region to, bool add) {
      draft.builder.expect_attention_backward(to, {draft.buffers.q, 0, queries}, {draft.buffers.kv, 0, all},
                                              {draft.buffers.d_out, 0, queries}, statistics, limit, add);
    };
    expect({draft.buffers.d_q, 0, queries}, false);
    expect({draft.d_kv, 0, all}, head > 0);
  }
  const Schedule schedule = draft.finish();
  RC_ASSERT(first_finding(schedule).empty());
  for (const char* name : {"mi300x-8", "h100-4"}) {
    const Machine machine = find_machine(name);
    const FunctionalResult result = execute_functionally(schedule, machine, 3);
    RC_ASSERT(result.stale_reads.empty());
    RC_ASSERT(result.max_relative_error < 1e-6);
  }
  const Schedule again = schedule_from_json(schedule_to_json(schedule), "again");
  RC_ASSERT(again.ops.size() == schedule.ops.size());
  for (std::size_t i = 0; i < again.ops.size(); ++i)
    RC_ASSERT(fields_of(again.ops[i]) == fields_of(schedule.ops[i]));
}

TEST(AttendBackward, IsRefusedWithoutMeaning) {
  const Rect keys{0, 0, 16, 2 * BackwardDraft::kDepth};
  const auto refusal = [&](Rect rect, int begin, int end, int limit, DType sums = DType::fp32) {
    BackwardDraft draft(sums);
    draft.builder.workgroup(draft.kernel);
    draft.builder.attend_backward(draft.buffers, rect, 0, begin, end, limit);
    draft.builder.store(draft.d_kv, rect, 0);
    return first_finding(draft.finish());
  };
  EXPECT_EQ(refusal(keys, 0, 48, 0), "");
  EXPECT_NE(refusal(keys, 8, 8, 0).find("queries [8, 8); give at least one"), std::string::npos);
  EXPECT_NE(refusal(keys, 0, 49, 0).find("Q[0:49, 0:16]; the buffer is 48×32"), std::string::npos);
  EXPECT_NE(refusal(keys, 0, 48, -1).find("limit -1"), std::string::npos);
  EXPECT_NE(refusal({0, 0, 16, 31}, 0, 48, 0).find("give twice the columns of a head"), std::string::npos);
  EXPECT_NE(refusal({0, 0, 32, 32}, 0, 48, 0)
                .find("keys of 32×16 beside values in a kernel that attends with 16 keys"),
            std::string::npos);
  EXPECT_NE(
      refusal(keys, 0, 48, 0, DType::fp16).find("'dQ' is fp16; statistics and gradients of queries are fp32"),
      std::string::npos);
}

TEST(AttendBackward, IsRefusedWhereSumsStartFromNothing) {
  BackwardDraft draft;
  const Rect keys{0, 0, 16, 2 * BackwardDraft::kDepth};
  draft.builder.workgroup(draft.kernel);
  draft.builder.attend_backward(draft.buffers, keys, 0, 0, 48);
  draft.builder.store(draft.d_kv, keys, 0);
  Schedule schedule = draft.finish();
  schedule.inputs.pop_back();  // the zeros of dQ
  EXPECT_NE(first_finding(schedule).find("adds to dQ[0:48, 0:16] of rank 0, but nothing writes"),
            std::string::npos);
}

// Every block of keys adds 4 bytes per element of dQ.
TEST(AttendBackward, AddsNoFasterThanTheAtomicUnits) {
  BackwardDraft draft;
  for (int row = 0; row < BackwardDraft::kTokens; row += 16) {
    draft.builder.workgroup(draft.kernel);
    for (int head = 0; head < BackwardDraft::kHeads; ++head) {
      draft.builder.attend_backward(draft.buffers, {row, 0, 16, 2 * BackwardDraft::kDepth},
                                    head * BackwardDraft::kDepth, 0, BackwardDraft::kTokens);
    }
  }
  Machine machine = find_machine("mi300x-8");
  machine.gpu.atomic_gb_per_s = 1e-4;
  const Schedule schedule = draft.finish();
  const double bytes = 3.0 * BackwardDraft::kHeads * BackwardDraft::kTokens * BackwardDraft::kDepth * 4;
  EXPECT_NEAR(simulate(schedule, machine).makespan_ns, bytes / 1e-4, 1e-3 * bytes / 1e-4);
}

TEST(AttendBackward, CountsTenFlopsPerColumnAndVisiblePair) {
  Op op;
  op.kind = OpKind::attend_backward;
  op.rect = {32, 0, 16, 2 * 8};
  op.k_begin = 0;
  op.k_end = 64;
  EXPECT_EQ(flops_of(op), 10.0 * 8 * 16 * 64);
  op.value = 1;  // query r sees keys up to r: 1 to 16 of 32 … 47, all of 48 … 63
  EXPECT_EQ(flops_of(op), 10.0 * 8 * (16 * 17 / 2 + 16 * 16));
}

double block_clocks(const Machine& machine, DType dtype, const MatmulTile& tile,
                    KernelProfile profile = KernelProfile::interpreter) {
  const AttendCost cost = attend_backward_cost(machine.gpu, costs(machine, profile), dtype, tile, {},
                                               {tile.n, tile.k, tile.m, false});
  return cost.cost.compute_ns * machine.gpu.rate(dtype).load_clock_ghz;
}

// Other workgroups fill all waits of CDNA's waves; with wgmma those of the serial pipeline alone.
TEST(AttendBackwardCost, LetsWorkgroupsFillEachOthersWaits) {
  const auto speedup = [](const char* name, const MatmulTile& tile) {
    const Machine machine = find_machine(name);
    return attend_backward_cost(machine.gpu, costs(machine, KernelProfile::interpreter), DType::bf16, tile,
                                {}, {tile.n, tile.k, tile.m, false})
        .shared_speedup;
  };
  const Machine mi355x = find_machine("mi355x-8"), h100 = find_machine("h100-4");
  MatmulTile tile{64, 256, 128, 4, Pipeline::overlapped};
  const double matrix = 10.0 * 64 * 256 * 128 / (4096 * 0.94);
  EXPECT_NEAR(speedup("mi355x-8", tile), block_clocks(mi355x, DType::bf16, tile) / matrix, 1e-9);
  tile = {64, 128, 128, 8, Pipeline::overlapped};
  const double overlapped = block_clocks(h100, DType::bf16, tile);
  EXPECT_EQ(speedup("h100-4", tile), 1);
  tile.pipeline = Pipeline::serial;
  EXPECT_NEAR(speedup("h100-4", tile), block_clocks(h100, DType::bf16, tile) / overlapped, 1e-9);
}

// The example of the law's header.
TEST(AttendBackwardCost, IsThatOfTheExample) {
  const Machine machine = find_machine("mi355x-8");
  const double matrix = 10.0 * 64 * 256 * 128 / (4096 * 0.94);
  const double vector = 64.0 * 256 / 16 + (6.0 * 64 * 256 + 64 * 128) / 64;
  const double lds = (18.0 * 64 * 128 + 2.0 * 256 * 128 * 4 + 5.0 * 64 * 256) * 2 / 256;
  EXPECT_NEAR(matrix, 5447, 1);
  EXPECT_NEAR(vector, 2688, 1);
  EXPECT_NEAR(lds, 3840, 1);
  const auto of = [&](Pipeline pipeline, std::int32_t waves) {
    return block_clocks(machine, DType::bf16, {64, 256, 128, waves, pipeline});
  };
  EXPECT_NEAR(of(Pipeline::overlapped, 4), matrix + vector + 5.0 * 64 * 256 * 2 / 256, 1e-6);
  EXPECT_NEAR(of(Pipeline::serial, 4), matrix + vector + lds, 1e-6);
  const double narrow = (8.0 * 64 * 128 + 256 * 128 * 4 + 5.0 * 64 * 256) * 2;
  const double moves = 4 * ((lds * 256 + narrow) / 16 + 64 * 128) / (64 * 4);
  EXPECT_NEAR(moves, 1632, 1);
  EXPECT_NEAR(of(Pipeline::interleaved, 4), vector + 5120.0 / 4 + moves, 1e-6);
  EXPECT_NEAR(of(Pipeline::ping_pong, 8), matrix + vector, 1e-6);
  EXPECT_NEAR(of(Pipeline::producer_consumer, 4), matrix + vector + 4 * 4.0 * 64 * 128 * 2 / 256, 1e-6);
}

// wgmma hides all but the exponentials, in the serial pipeline nothing; mma.sync does all in turn.
TEST(AttendBackwardCost, AddsOnHopperWhatDoesNotOverlap) {
  const Machine machine = find_machine("h100-4");
  const MatmulTile tile{64, 128, 128, 8, Pipeline::overlapped};
  const double lds = ((3.0 * 128 + 8 * 64) * 128 + 3.0 * 64 * 128) * 2 + 8.0 * 64 * 128;
  const double matrix = 10.0 * 64 * 128 * 128 / (4096 * machine.gpu.rate(DType::fp16).issue_efficiency);
  const double both = std::max(matrix, lds / machine.gpu.lds_bytes_per_clk);
  EXPECT_NEAR(block_clocks(machine, DType::fp16, tile), both + 64.0 * 128 / 16, 1e-6);
  const double plain = 7.0 * 64 * 128 / (32 * 4);  // 6 per score and 1 per element of dQ, which are as many
  MatmulTile serial = tile;
  serial.pipeline = Pipeline::serial;
  EXPECT_NEAR(block_clocks(machine, DType::fp16, serial), both + 64.0 * 128 / 16 + plain, 1e-6);
  // Two rows of four waves; mma.sync reaches 62.9 % of the peak.
  const double of_fragments = (18.0 * 64 * 128 + 6.0 * 128 * 128 + 10.0 * 64 * 128) * 2;
  EXPECT_NEAR(block_clocks(machine, DType::fp16, tile, KernelProfile::mma_sync),
              10.0 * 64 * 128 * 128 / (4096 * 0.629) + std::max(64.0 * 128 / 16, plain) +
                  of_fragments / machine.gpu.lds_bytes_per_clk,
              1e-6);
}

// With keys for all waves.
RC_GTEST_PROP(AttendBackwardCost, NeverFallsWithAnySideOfTheTile, ()) {
  const Machine machine =
      find_machine(*rc::gen::element<std::string>("mi300x-8", "mi355x-8", "h100-4", "a100-8"));
  MatmulTile tile{16 * *rc::gen::inRange(1, 8), 16 * *rc::gen::inRange(8, 16), 16 * *rc::gen::inRange(1, 16),
                  *rc::gen::element(4, 8), *rc::gen::element(Pipeline::serial, Pipeline::overlapped)};
  const auto profile = *rc::gen::element(KernelProfile::interpreter, KernelProfile::mma_sync);
  const double before = block_clocks(machine, DType::bf16, tile, profile);
  for (std::int32_t* side : {&tile.m, &tile.n, &tile.k}) {
    *side += 16;
    RC_ASSERT(block_clocks(machine, DType::bf16, tile, profile) >= before * (1 - 1e-12));
    *side -= 16;
  }
}

}  // namespace
}  // namespace tritax
