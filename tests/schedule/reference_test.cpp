// Inputs and reference of a schedule: what is refused of them, what they say of order, and what is inferred.
#include "model/schedule/reference.hpp"

#include <gtest/gtest.h>

#include <set>

#include "model/schedule/json.hpp"
#include "model/schedule/relax.hpp"
#include "model/workloads/gemm_all_scatter/workload.hpp"
#include "tests/schedule/collective_gemm.hpp"
#include "tests/schedule/expect_finding.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

// Two ranks with buffers A (4x6, input), B (6x8, input) and C (4x8); nothing is executed.
struct Draft {
  Draft()
      : builder("draft", 2),
        a(builder.buffer({"A", DType::fp16, 4, 6, 4, 6})),
        b(builder.buffer({"B", DType::fp16, 6, 8, 6, 8})),
        c(builder.buffer({"C", DType::fp16, 4, 8, 4, 8})) {
    builder.input(builder.whole(a));
    builder.input(builder.whole(b));
  }
  ScheduleBuilder builder;
  std::int16_t a, b, c;
};

template <typename Add>
void expect_refused(Add add, Kind kind, const std::string& where, const std::string& message) {
  Draft d;
  add(d);
  expect_finding(d.builder.finish(), kind, where, message);
}

TEST(CheckReference, ProductsCopiesAndSumsThatFitAreSound) {
  Draft d;
  d.builder.expect_product({d.c, kEveryRank, {0, 0, 4, 8}}, d.builder.whole(d.a, 0), d.builder.whole(d.b, 1));
  d.builder.expect_product({d.c, 1, {0, 0, 4, 8}}, d.builder.whole(d.a, 1), d.builder.whole(d.b, 1), true);
  d.builder.expect_copy({d.c, 0, {0, 2, 4, 6}}, d.builder.whole(d.a, 1));
  d.builder.expect_sum({d.c, 1, {0, 0, 4, 6}}, d.builder.whole(d.a));
  expect_sound(d.builder.finish());
}

TEST(CheckReference, RegionsOutOfRangeAreRefused) {
  expect_refused(
      [](Draft& d) {
        d.builder.input({7, 0, {0, 0, 1, 1}});
      },
      Kind::out_of_range, "input 2", "buffer 7; the schedule has 3 buffers");
  expect_refused(
      [](Draft& d) {
        d.builder.input({d.c, 2, {0, 0, 1, 1}});
      },
      Kind::out_of_range, "input 2", "rank 2; the schedule has 2 ranks");
  expect_refused(
      [](Draft& d) {
        d.builder.input({d.c, -2, {0, 0, 1, 1}});
      },
      Kind::out_of_range, "input 2", "rank -2; the schedule has 2 ranks");
  expect_refused(
      [](Draft& d) {
        d.builder.input({d.c, 0, {3, 0, 2, 2147483647}});
      },
      Kind::out_of_range, "input 2", "C[3:5, 0:2147483647]; the buffer is 4×8");
  expect_refused(
      [](Draft& d) {
        d.builder.expect_copy({d.c, kEveryRank, {0, 0, 4, 6}}, {d.a, 2, {0, 0, 4, 6}});
      },
      Kind::out_of_range, "reference operation 0 (copy)", "a: rank 2; the schedule has 2 ranks");
  expect_refused(
      [](Draft& d) {
        d.builder.expect_product(d.builder.whole(d.c), d.builder.whole(d.a, 0), {d.b, 0, {1, 0, 6, 8}});
      },
      Kind::out_of_range, "reference operation 0 (product)", "b: B[1:7, 0:8]; the buffer is 6×8");
}

TEST(CheckReference, ShapesThatDoNotFitAreRefused) {
  expect_refused(
      [](Draft& d) {
        d.builder.expect_product(d.builder.whole(d.c), d.builder.whole(d.a, 0), {d.b, 0, {0, 0, 5, 8}});
      },
      Kind::meaningless, "reference operation 0 (product)", "multiplies 4×6 by 5×8 to 4×8");
  expect_refused([](Draft& d) { d.builder.expect_copy(d.builder.whole(d.c), d.builder.whole(d.a, 0)); },
                 Kind::meaningless, "reference operation 0 (copy)", "a is 4×6 and its target 4×8");
}

TEST(CheckReference, OnlyASumReadsEveryRank) {
  expect_refused(
      [](Draft& d) {
        d.builder.expect_copy({d.c, 0, {0, 0, 4, 6}}, d.builder.whole(d.a));
      },
      Kind::meaningless, "reference operation 0 (copy)", "takes a of every rank");
  expect_refused(
      [](Draft& d) {
        d.builder.expect_sum({d.c, 0, {0, 0, 4, 6}}, d.builder.whole(d.a, 1));
      },
      Kind::meaningless, "reference operation 0 (sum)", "sums a of rank 1 alone");
}

TEST(CheckReference, ValuesThatNobodyKnowsAreRefused) {
  expect_refused(
      [](Draft& d) {
        d.builder.input({d.c, 0, {0, 0, 4, 5}});
        d.builder.expect_copy(d.builder.whole(d.c, 1), d.builder.whole(d.c, 0));
      },
      Kind::meaningless, "reference operation 0 (copy)",
      "reads C[0:4, 0:8] of rank 0, but no input fills C[0:4, 5:8] of rank 0");
  expect_refused(
      [](Draft& d) {
        d.builder.input(d.builder.whole(d.c, 0));
        d.builder.expect_sum(d.builder.whole(d.c), d.builder.whole(d.c));
      },
      Kind::meaningless, "reference operation 0 (sum)", "C[0:4, 0:8] of rank 1");
  expect_refused(
      [](Draft& d) {
        d.builder.expect_copy({d.c, 0, {0, 0, 4, 6}}, d.builder.whole(d.a, 0), true);
      },
      Kind::meaningless, "reference operation 0 (copy)", "reads C[0:4, 0:6] of rank 0");
}

// A high region that begins far above what is read is found among low ones that begin nearer.
TEST(CheckReference, ValuesOfHighAndLowRegionsAreFoundByTheirRows) {
  const auto draft = [](std::int32_t high) {
    ScheduleBuilder builder("rows", 1);
    const std::int16_t from = builder.buffer({"from", DType::fp16, 40, 8, 4, 8});
    const std::int16_t to = builder.buffer({"to", DType::fp16, 40, 8, 4, 8});
    builder.input({from, 0, {0, 0, high, 4}});
    for (std::int32_t row = 0; row < 40; row += 2) builder.input({from, 0, {row, 4, 2, 4}});
    builder.expect_copy({to, 0, {0, 0, 10, 8}}, {from, 0, {30, 0, 10, 8}});
    return builder.finish();
  };
  expect_sound(draft(40));
  expect_finding(draft(39), Kind::meaningless, "reference operation 0 (copy)",
                 "reads from[30:40, 0:8] of rank 0, but no input fills from[39:40, 0:4] of rank 0");
}

TEST(CheckReference, AdditionOntoWhatDiffersBetweenRanksIsRefused) {
  const auto add_everywhere = [](Draft& d) {
    d.builder.expect_copy({d.c, kEveryRank, {0, 0, 4, 6}}, d.builder.whole(d.a, 0), true);
  };
  Draft same;
  same.builder.input(same.builder.whole(same.c), InputValues::same);
  add_everywhere(same);
  expect_sound(same.builder.finish());
  expect_refused(
      [&](Draft& d) {
        d.builder.input(d.builder.whole(d.c));
        add_everywhere(d);
      },
      Kind::meaningless, "reference operation 0 (copy)", "adds onto C[0:4, 0:6] of every rank");
  expect_refused(
      [&](Draft& d) {
        d.builder.input(d.builder.whole(d.c), InputValues::zero);
        d.builder.expect_copy({d.c, 1, {0, 0, 4, 6}}, d.builder.whole(d.a, 0));
        add_everywhere(d);
      },
      Kind::meaningless, "reference operation 1 (copy)", "may differ between ranks");
}

TEST(Expected, OfTwoOperationsThatWriteOnePlaceTheLaterCounts) {
  Draft d;
  d.builder.expect_copy({d.c, kEveryRank, {0, 0, 4, 6}}, d.builder.whole(d.a, 0));
  d.builder.expect_copy({d.c, 1, {0, 0, 2, 6}}, {d.a, 0, {0, 0, 2, 6}});
  const Schedule schedule = d.builder.finish();
  ASSERT_EQ(expected_on(schedule, 0).size(), 1U);
  const auto parts = expected_on(schedule, 1);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].op, 0U);
  EXPECT_EQ(parts[0].rect.row, 2);
  EXPECT_EQ(parts[0].rect.rows, 2);
  EXPECT_EQ(parts[1].op, 1U);
}

TEST(Inputs, OfOneGroupHaveOneSeedAndOthersTheirOwn) {
  std::set<std::uint64_t> seeds;
  for (const std::int32_t group : {0, 1, 101}) {
    for (const std::int32_t rank : {0, 1, 101}) {
      seeds.insert(seed_of({{}, group, InputValues::own}, 1, rank));
      EXPECT_EQ(seed_of({{0, 0, {}}, group, InputValues::same}, 1, rank),
                seed_of({{1, 1, {}}, group, InputValues::same}, 1, 0));
    }
    seeds.insert(seed_of({{}, group, InputValues::same}, 1, 0));
  }
  seeds.insert(seed_of({{}, 0, InputValues::same}, 2, 0));
  EXPECT_EQ(seeds.size(), 13U);
}

TEST(InputsByRegion, AnAllGatherInPlaceIsSound) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const std::int32_t rows : {16, 7}) {
      const Schedule schedule = all_gather_gemm({ranks, rows, 29, 19});
      expect_sound(schedule);
      const Schedule relaxed = with_tile_dependences(schedule);
      expect_sound(relaxed);
      EXPECT_EQ(relaxed.inputs.size(), schedule.inputs.size());
      EXPECT_EQ(relaxed.reference.size(), schedule.reference.size());
    }
  }
}

TEST(InputsByRegion, ASliceThatIsInNoInputMustBeWrittenBefore) {
  Schedule schedule = all_gather_gemm({});
  schedule.inputs.erase(schedule.inputs.begin() + 2);  // rows 16 to 32 of A on rank 1
  expect_finding(schedule, Kind::meaningless, "reference operation 3 (copy)",
                 "reads A[16:32, 0:32] of rank 1");
  schedule.reference.clear();
  expect_finding(schedule, Kind::unordered_read, "kernel 'gather' rank 1 workgroup 0 operation 0 (copy)",
                 "nothing writes A[16:32, 0:32] of rank 1 before; it is in no input of the schedule");
}

TEST(InputsByRegion, WithoutDeclaredInputsABufferIntoWhichPeersWriteIsNone) {
  Schedule schedule = all_gather_gemm({});
  schedule.inputs.clear();
  schedule.reference.clear();
  expect_finding(schedule, Kind::unordered_read, "kernel 'gather' rank 0 workgroup 0 operation 0 (copy)",
                 "other parts of the buffer are written, so it is not an input");
}

TEST(InputsByRegion, AReadOfABufferThatNobodyFillsOrWritesIsRefused) {
  Schedule schedule = all_gather_gemm({});
  schedule.inputs.erase(schedule.inputs.begin());  // B
  schedule.reference.clear();
  expect_finding(schedule, Kind::unordered_read, "kernel 'gemm' rank 0 workgroup 0 operation 1 (matmul)",
                 "nothing writes B[0:32, 0:16] of rank 0 before");
}

TEST(InputsByRegion, AWriteIntoAnInputThatNothingOrdersWithItsReaderIsARace) {
  Schedule schedule = all_gather_gemm({});
  Op& copy = schedule.ops[schedule.kernels[1].workgroups[0].first_op];
  ASSERT_EQ(copy.kind, OpKind::copy);
  copy.rect.row = 0;  // rank 1 writes to the slice that is rank 0's own
  expect_finding(
      schedule, Kind::unordered_read, "kernel 'gather' rank 0 workgroup 0 operation 0 (copy)",
      "reads A[0:16, 0:32] of rank 0, which kernel 'gather' rank 1 workgroup 0 operation 0 (copy)");
}

std::string without_keys(const std::string& text, const std::string& from, const std::string& to) {
  const auto begin = text.find(from);
  return text.substr(0, begin) + text.substr(text.find(to, begin));
}

// The JSON form of a schedule as it was before there were inputs and a reference.
Schedule read_as_before(const Schedule& schedule) {
  return schedule_from_json(without_keys(schedule_to_json(schedule), "\"inputs\"", "\"flags\""), "old");
}

TEST(InferredReference, IsTheProductByColumnBlocksOfTheWorkload) {
  for (const int ranks : {1, 2, 3, 8}) {
    const GemmAllScatter workload{5, 35, 7, DType::fp16, ranks};
    ScheduleBuilder builder("old", ranks);
    const auto b_cols = static_cast<std::int32_t>(owned_columns(workload, 0).size());
    builder.buffer({"A", DType::fp16, 5, 7, 5, 7});
    builder.buffer({"B", DType::fp16, 7, b_cols, 7, b_cols});
    builder.result(builder.buffer({"C", DType::fp16, 5, 35, 5, 35}));
    const Schedule read = read_as_before(builder.finish());
    expect_sound(read);
    ASSERT_EQ(read.reference.size(), static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const ReferenceOp& op = read.reference[static_cast<std::size_t>(rank)];
      const Share own = owned_columns(workload, rank);
      EXPECT_EQ(op.to.rank, kEveryRank);
      EXPECT_EQ(op.to.rect.col, own.begin);
      EXPECT_EQ(op.to.rect.cols, own.size());
      EXPECT_EQ(op.a.rank, rank);
      EXPECT_EQ(op.b.rank, rank);
      EXPECT_EQ(op.b.rect.cols, own.size());
    }
    EXPECT_EQ(read.inputs.at(0).values, InputValues::same);
    EXPECT_EQ(read.inputs.at(1).values, InputValues::own);
  }
}

TEST(InferredReference, IsNoneWhereTheBuffersAreNoProductOrAnOperandIsWritten) {
  ScheduleBuilder builder("old", 1);
  const auto a = builder.buffer({"A", DType::fp16, 5, 7, 5, 7});
  builder.buffer({"B", DType::fp16, 7, 4, 7, 4});
  const auto c = builder.buffer({"C", DType::fp16, 5, 4, 5, 4});
  const auto kernel = builder.kernel(Kernel());
  builder.workgroup(kernel);
  builder.barrier();
  builder.result(c);
  const Schedule whole = builder.finish();
  EXPECT_EQ(read_as_before(whole).reference.size(), 1U);
  Schedule no_result = whole;
  no_result.result_buffer = -1;
  EXPECT_TRUE(schedule_from_json(schedule_to_json(no_result), "old").reference.empty());
  Schedule unlike = whole;
  unlike.buffers[0].cols = 6;
  EXPECT_TRUE(read_as_before(unlike).reference.empty());
  Schedule written = whole;
  written.ops[0].kind = OpKind::copy;
  written.ops[0].buffer = a;
  written.ops[0].src_buffer = a;
  written.ops[0].rect = {0, 0, 1, 1};
  EXPECT_TRUE(read_as_before(written).reference.empty());
  EXPECT_TRUE(read_as_before(written).inputs.empty());
}

TEST(InferredReference, LeavesAlongOtherBuffersIntoWhichNobodyWrites) {
  Schedule schedule = all_gather_gemm({1});
  schedule.buffers.push_back({"bias", DType::fp16, 4, 4, 4, 4});
  schedule.inputs.clear();
  schedule.reference.clear();
  const Schedule read = read_as_before(schedule);
  ASSERT_EQ(read.inputs.size(), 3U);
  EXPECT_EQ(read.inputs[2].region.buffer, 3);
  expect_sound(read);
}

std::string json_with(const std::string& keys) {
  return R"({"schema": "tritax.schedule/1", "ranks": 2, )" + keys +
         R"(, "buffers": [{"name": "A", "dtype": "fp16", "shape": [64, 32]}], "host": [[], []]})";
}

std::string message_of(const std::string& text) {
  try {
    schedule_from_json(text, "s.json");
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReferenceJson, DefaultsAreEveryRankTheRestOfTheBufferAndOwnNumbers) {
  const Schedule schedule = schedule_from_json(
      json_with(R"("inputs": [{"buffer": "A"}, {"buffer": "A", "rank": 1, "at": [60, 2], "values": "zero"}],
                   "reference": [{"op": "sum", "to": {"buffer": "A", "rank": 0}, "a": {"buffer": "A"}}])"),
      "s.json");
  ASSERT_EQ(schedule.inputs.size(), 2U);
  EXPECT_EQ(schedule.inputs[0].region.rank, kEveryRank);
  EXPECT_EQ(schedule.inputs[0].region.rect.rows, 64);
  EXPECT_EQ(schedule.inputs[0].values, InputValues::own);
  EXPECT_EQ(schedule.inputs[1].region.rank, 1);
  EXPECT_EQ(schedule.inputs[1].region.rect.rows, 4);
  EXPECT_EQ(schedule.inputs[1].region.rect.cols, 30);
  EXPECT_EQ(schedule.inputs[1].group, 1);
  EXPECT_EQ(schedule.inputs[1].values, InputValues::zero);
  ASSERT_EQ(schedule.reference.size(), 1U);
  EXPECT_EQ(schedule.reference[0].to.rank, 0);
  EXPECT_FALSE(schedule.reference[0].add);
}

TEST(ReferenceJson, MistakesAreNamedWithTheirPlace) {
  const auto expect = [](const std::string& keys, const std::string& part) {
    const std::string message = message_of(json_with(keys));
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(R"("inputs": {})", "s.json: inputs: ");
  expect(R"("inputs": [{"buffer": "X"}])", "s.json: inputs[0].buffer: unknown buffer 'X'");
  expect(R"("inputs": [{"bufer": "A"}])", "s.json: inputs[0]: unknown key 'bufer', did you mean 'buffer'?");
  expect(R"("inputs": [{"buffer": "A", "values": "random"}])",
         "s.json: inputs[0].values: unknown name 'random'; allowed: own, same, zero");
  expect(R"("inputs": [{"buffer": "A", "rank": -1}])", "s.json: inputs[0].rank: -1 is not allowed");
  expect(R"("inputs": [{"buffer": "A", "shape": [0, 1]}])", "s.json: inputs[0].shape[0]: 0 is not allowed");
  expect(R"("reference": [{"op": "produkt"}])",
         "s.json: reference[0].op: unknown name 'produkt', did you mean 'product'?");
  expect(R"("reference": [{"op": "copy", "to": {"buffer": "A"}}])",
         "s.json: reference[0]: the key 'a' is missing");
  expect(R"("reference": [{"op": "copy", "to": {"buffer": "A"}, "a": {"buffer": "A"}, "b": {}}])",
         "s.json: reference[0]: unknown key 'b'");
  expect(R"("reference": [{"op": "sum", "to": {"buffer": "A"}, "a": {"buffer": "A", "to": 1}}])",
         "s.json: reference[0].a: unknown key 'to'");
}

TEST(ReferenceJson, EmptyListsMeanNoneAndStay) {
  const Schedule written = all_gather_gemm({1});
  Schedule bare = written;
  bare.inputs.clear();
  bare.reference.clear();
  const Schedule read = schedule_from_json(schedule_to_json(bare), "text");
  EXPECT_TRUE(read.inputs.empty());
  EXPECT_TRUE(read.reference.empty());
  const Schedule whole = schedule_from_json(schedule_to_json(written), "text");
  EXPECT_EQ(whole.inputs.size(), written.inputs.size());
  EXPECT_EQ(whole.reference.size(), written.reference.size());
}

}  // namespace
}  // namespace tritax
