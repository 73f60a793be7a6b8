// Attention in schedules: its checks, its result and its time.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "model/cost/attend_cost.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/builder.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"
#include "model/schedule/operations.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

// Attention of `heads` query heads on `heads / group` heads of keys, `batch` times, heads as column blocks
// and batches as row blocks; `tokens` queries and keys each.
struct AttendDraft {
  int batch = 1, heads = 2, group = 1, tokens = 48, depth = 16;
  bool causal = false;
  int ranks = 1;
  ScheduleBuilder builder{"attention", 1};
  std::int16_t q = 0, k = 0, v = 0, o = 0;
  std::int32_t kernel = 0;

  void begin() {
    builder = ScheduleBuilder("attention", ranks);
    const int rows = batch * tokens;
    q = builder.buffer({"Q", DType::fp16, rows, heads * depth, 16, depth});
    k = builder.buffer({"K", DType::fp16, rows, heads / group * depth, 16, depth});
    v = builder.buffer({"V", DType::fp16, rows, heads / group * depth, 16, depth});
    o = builder.buffer({"O", DType::fp16, rows, heads * depth, 16, depth});
    builder.result(o);
    for (const std::int16_t buffer : {q, k, v}) builder.input(builder.whole(buffer), InputValues::same);
  }
  std::int32_t add_kernel(int rank) {
    Kernel attend;
    attend.name = "attend";
    attend.rank = rank;
    attend.tile = {64, 16, depth, 4, Pipeline::overlapped};
    return builder.kernel(attend);
  }
  Rect queries(int z, int head, int row, int rows) const {
    return {z * tokens + row, head * depth, rows, depth};
  }
  int column(int head) const { return head / group * depth; }
  void expect() {
    for (int z = 0; z < batch; ++z) {
      for (int head = 0; head < heads; ++head) {
        const Rect keys{z * tokens, column(head), tokens, depth};
        const Rect rows = queries(z, head, 0, tokens);
        builder.expect_attention({o, kEveryRank, rows}, {q, 0, rows}, {k, 0, keys}, {v, 0, keys},
                                 causal ? 1 : 0);
      }
    }
  }
  ScheduleBuilder::Mask mask(int z, int row) const { return {causal ? z * tokens + row + 1 : 0, 1}; }
  // All on one GPU: a workgroup per tile of queries, keys in pieces.
  Schedule whole(int rows, int piece) {
    begin();
    kernel = add_kernel(0);
    for (int z = 0; z < batch; ++z) {
      for (int head = 0; head < heads; ++head) {
        for (int row = 0; row < tokens; row += rows) {
          builder.workgroup(kernel);
          const Rect tile = queries(z, head, row, std::min(rows, tokens - row));
          for (int key = 0; key < tokens; key += piece) {
            builder.attend(q, tile, k, v, column(head), z * tokens + key,
                           z * tokens + std::min(tokens, key + piece), mask(z, row));
          }
          builder.store(o, tile, 0);
        }
      }
    }
    builder.launch(0, kernel);
    builder.host(0, HostOpKind::device_synchronize);
    expect();
    return builder.finish();
  }
};

bool mentions(const std::vector<Finding>& findings, const std::string& text) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.message.find(text) != std::string::npos; });
}

double error_of(const Schedule& schedule, const std::string& machine) {
  const std::vector<Finding> findings = check_schedule(schedule);
  EXPECT_TRUE(findings.empty()) << (findings.empty() ? "" : findings[0].message);
  const FunctionalResult result = execute_functionally(schedule, find_machine(machine), 7);
  EXPECT_TRUE(result.stale_reads.empty());
  return result.max_relative_error;
}

RC_GTEST_PROP(Attend, GivesSoftmaxOfAnyCutCausalAndGrouped, ()) {
  AttendDraft draft;
  draft.batch = *rc::gen::inRange(1, 3);
  draft.group = *rc::gen::element(1, 2, 4);
  draft.heads = draft.group * *rc::gen::inRange(1, 3);
  draft.tokens = *rc::gen::inRange(1, 70);
  draft.depth = *rc::gen::element(8, 16);
  draft.causal = *rc::gen::arbitrary<bool>();
  const Schedule schedule = draft.whole(*rc::gen::inRange(1, 65), *rc::gen::inRange(1, 40));
  RC_ASSERT(error_of(schedule, "mi300x-8") < 1e-6);
}

// Flash decode: every GPU attends to its share of the keys, sends its partial to all, and combines what
// comes.
Schedule split_over_ranks(int ranks) {
  AttendDraft draft;
  draft.ranks = ranks;
  draft.tokens = 16 * ranks;
  draft.begin();
  ScheduleBuilder& b = draft.builder;
  const int rows = draft.tokens;
  const auto partial =
      b.buffer({"partial", DType::fp32, ranks * rows, draft.depth + 1, rows, draft.depth + 1});
  const auto arrived = b.flags("arrived", 1);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int32_t kernel = draft.add_kernel(rank);
    b.workgroup(kernel);
    const Rect tile = draft.queries(0, 0, 0, rows);
    b.attend(draft.q, tile, draft.k, draft.v, 0, rank * 16, rank * 16 + 16);
    const Rect own{rank * rows, 0, rows, draft.depth + 1};
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      b.store(partial, own, peer);
      b.signal(arrived, 0, 1, peer, Scope::system, LockProtocol::load_store);
    }
    b.wait(arrived, 0, ranks - 1, Scope::system, LockProtocol::load_store);
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != rank) b.combine(partial, {peer * rows, 0, rows, draft.depth + 1}, rank);
    }
    b.store(draft.o, tile, rank);
    b.launch(rank, kernel);
    b.host(rank, HostOpKind::device_synchronize);
  }
  const Rect keys{0, 0, rows, draft.depth};
  b.expect_attention({draft.o, kEveryRank, keys}, {draft.q, 0, keys}, {draft.k, 0, keys}, {draft.v, 0, keys});
  return b.finish();
}

TEST(Attend, PartialsOfSeveralGpusCombineToTheWhole) {
  for (const int ranks : {2, 4}) EXPECT_LT(error_of(split_over_ranks(ranks), "mi300x-8"), 1e-5);
  EXPECT_LT(error_of(split_over_ranks(2), "h100-4"), 1e-5);
}

TEST(Attend, RowsThatSeeNothingAreZero) {
  AttendDraft draft;
  draft.heads = 1;
  draft.tokens = 4;
  draft.begin();
  draft.kernel = draft.add_kernel(0);
  draft.builder.workgroup(draft.kernel);
  const Rect tile = draft.queries(0, 0, 0, 4);
  draft.builder.attend(draft.q, tile, draft.k, draft.v, 0, 2, 4, {1, 1});  // rows 2 and 3 alone see keys
  draft.builder.store(draft.o, tile, 0);
  draft.builder.launch(0, draft.kernel);
  const Rect keys{2, 0, 2, draft.depth};
  draft.builder.expect_attention({draft.o, 0, {2, 0, 2, draft.depth}}, {draft.q, 0, {2, 0, 2, draft.depth}},
                                 {draft.k, 0, keys}, {draft.v, 0, keys}, 1);
  const auto zero = draft.builder.buffer({"zero", DType::fp16, 2, draft.depth, 2, draft.depth});
  draft.builder.input(draft.builder.whole(zero), InputValues::zero);
  draft.builder.expect_copy({draft.o, 0, {0, 0, 2, draft.depth}}, draft.builder.whole(zero, 0));
  EXPECT_LT(error_of(draft.builder.finish(), "mi300x-8"), 1e-6);
}

TEST(Attend, FindsAWrongResult) {
  Schedule schedule = AttendDraft{}.whole(16, 16);
  schedule.ops[0].k_end -= 1;
  EXPECT_GT(execute_functionally(schedule, find_machine("mi300x-8"), 7).max_relative_error, 1e-3);
}

TEST(Attend, RefusesWhatHasNoMeaning) {
  const auto refused = [](const auto& change, const std::string& text) {
    Schedule schedule = AttendDraft{}.whole(48, 16);
    change(schedule.ops);
    EXPECT_TRUE(mentions(check_schedule(schedule), text)) << text;
  };
  using Ops = std::vector<Op>;
  refused([](Ops& ops) { ops[0].k_end = 49; }, "K[0:49, 0:16]; the buffer is 48×32");
  refused([](Ops& ops) { ops[0].src_col = 20; }, "K[0:16, 20:36]; the buffer is 48×32");
  refused([](Ops& ops) { ops[0].k_begin = 16; }, "keys [16, 16); give at least one");
  refused([](Ops& ops) { ops[0].value = -1; }, "limit -1");
  refused([](Ops& ops) { ops[1].kind = OpKind::reduce; }, "only attend and combine go on with");
  refused([](Ops& ops) { ops[0].kind = OpKind::load; }, "without log-sum-exps");
  refused([](Ops& ops) { ops[3].rect.cols = 18; }, "a tile of 48×18 while the accumulator holds 48×16");
}

TEST(Attend, WritesAndReadsItsJsonForm) {
  AttendDraft draft;
  draft.causal = true;
  const Schedule schedule = draft.whole(16, 16);
  const std::string json = schedule_to_json(schedule, true);
  EXPECT_NE(json.find(R"("queries": "Q", "keys": "K", "values": "V")"), std::string::npos);
  EXPECT_EQ(schedule_to_json(schedule_from_json(json, "attention.json"), true), json);
}

TEST(Attend, CountsTheKeysThatItsRowsSee) {
  Op op;
  op.kind = OpKind::attend;
  op.rect = {0, 0, 4, 16};
  op.k_end = 8;
  EXPECT_DOUBLE_EQ(flops_of(op), 4.0 * 16 * 32);
  op.value = 1;
  op.index = 2;
  EXPECT_DOUBLE_EQ(flops_of(op), 4.0 * 16 * (1 + 1 + 2 + 2));
}

TEST(AttendCost, IsBoundByTheSlowestUnitWhereTheyOverlap) {
  const Machine machine = find_machine("mi300x-8");
  const Gpu& gpu = machine.gpu;
  const AttendWork work{128, 128, 1 << 17, true};
  MatmulTile tile{128, 64, 128, 4, Pipeline::overlapped};
  const AttendCost overlapped = attend_cost(gpu, machine.interpreter, DType::fp16, tile, {}, work);
  const double ideal_ns = 4.0 * 128 * 128 * (1 << 17) /
                          (gpu.rate(DType::fp16).flop_per_clk_per_cu * gpu.rate(DType::fp16).load_clock_ghz);
  EXPECT_GE(overlapped.cost.compute_ns, ideal_ns);
  EXPECT_LT(overlapped.cost.compute_ns, 2 * ideal_ns);
  tile.pipeline = Pipeline::serial;
  const AttendCost serial = attend_cost(gpu, machine.interpreter, DType::fp16, tile, {}, work);
  EXPECT_GT(serial.cost.compute_ns, overlapped.cost.compute_ns);
  EXPECT_DOUBLE_EQ(serial.shared_speedup * overlapped.cost.compute_ns, serial.cost.compute_ns);
  EXPECT_DOUBLE_EQ(overlapped.cost.operand_bytes, 2.0 * (1 << 17) * 256 + 128 * 256);
  AttendWork twice = work;
  twice.keys *= 2;
  EXPECT_DOUBLE_EQ(attend_cost(gpu, machine.interpreter, DType::fp16, tile, {}, twice).cost.compute_ns,
                   2 * serial.cost.compute_ns);
}

// 128 queries by 128 keys of 16 columns: 1024 clocks of exponentials. With wgmma 256 of products come before
// them, and 528 of other vector work hide; where waves have 64 lanes, 1056 of it follow them and products
// hide.
TEST(AttendCost, OfNarrowHeadsIsThatOfTheSoftmax) {
  const auto clocks_of = [](const char* name) {
    const Machine machine = find_machine(name);
    const MatmulTile tile{128, 128, 16, 4, Pipeline::overlapped};
    const AttendCost cost =
        attend_cost(machine.gpu, machine.interpreter, DType::fp16, tile, {}, {128, 16, 1280, true});
    EXPECT_DOUBLE_EQ(cost.steps, 10);
    return cost.cost.compute_ns * machine.gpu.rate(DType::fp16).load_clock_ghz / cost.steps;
  };
  const double issued = find_machine("h100-4").gpu.rate(DType::fp16).issue_efficiency;
  EXPECT_NEAR(clocks_of("h100-4"), 1024 + 256 / issued, 1e-6);
  EXPECT_NEAR(clocks_of("mi300x-8"), 1024 + 1056, 1e-6);
}

// 128 queries against 64 keys of 128 columns, whatever tile the schedule names: products at 62.9 % of the
// peak, exponentials, and K and V into LDS and out of it for each 16 rows, with the queries.
TEST(AttendCost, OfWavesInTurnAddsProductsSoftmaxAndLds) {
  const Machine machine = find_machine("h100-4");
  const Gpu& gpu = machine.gpu;
  const KernelCosts in_turn = costs(machine, KernelProfile::mma_sync);
  const AttendWork work{128, 128, 1280, true};
  const double products = 4.0 * 128 * 64 * 128 / (4096 * 0.629);
  const double lds = 10 * 2.0 * 64 * 128 * 2 / gpu.lds_bytes_per_clk;  // nine times K and V, and Q once
  const double block_ns = (products + 512 + lds) / gpu.rate(DType::fp16).load_clock_ghz;
  for (const Pipeline pipeline : {Pipeline::serial, Pipeline::overlapped}) {
    for (const std::int32_t keys : {16, 32, 128}) {
      const AttendCost cost = attend_cost(gpu, in_turn, DType::fp16, {128, keys, 128, 4, pipeline}, {}, work);
      EXPECT_DOUBLE_EQ(cost.steps, 20);
      EXPECT_NEAR(cost.cost.compute_ns, 20 * block_ns, 1e-6 * block_ns);
      EXPECT_DOUBLE_EQ(cost.shared_speedup, 1);
      EXPECT_EQ(cost.stages, 2);
    }
  }
  const AttendCost ahead =
      attend_cost(gpu, machine.interpreter, DType::fp16, {128, 64, 128, 4, Pipeline::overlapped}, {}, work);
  EXPECT_GT(20 * block_ns, 2 * ahead.cost.compute_ns);  // FlashAttention-3 hides softmax and loads
}

TEST(Attend, TakesAtLeastItsMatrixWorkAndCountsIt) {
  AttendDraft draft;
  draft.heads = 8;
  draft.tokens = 2048;
  draft.depth = 64;
  draft.causal = true;
  const Machine machine = find_machine("mi300x-8");
  const SimulationResult run = simulate(draft.whole(64, 512), machine, {});
  EXPECT_DOUBLE_EQ(run.matrix_flops, 8 * 4.0 * 64 * (2048.0 * 2049 / 2));
  const Gpu& gpu = machine.gpu;
  EXPECT_GT(run.makespan_ns, run.matrix_flops / (gpu.cu_count() * gpu.rate(DType::fp16).flop_per_clk_per_cu *
                                                 gpu.boost_clock_ghz));
  EXPECT_GT(run.l2_hit_fraction, 0);
}

}  // namespace
}  // namespace tritax
