// Every reference operation against Eigen, and whole schedules against their reference.
#include "sim/functional_reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "model/core/error.hpp"
#include "model/schedule/json.hpp"
#include "model/workloads/all_gather/workload.hpp"
#include "sim/functional.hpp"
#include "tests/schedule/collective_gemm.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

constexpr double kAlmostExact = 1e-6;

// Three ranks with an input A (5x7), an input B (7x9) and a target C (5x9); `want` is what the test expects
// of a region, computed by Eigen from the inputs, and no reference operation.
struct ThreeRanks {
  ThreeRanks()
      : builder("draft", 3),
        a(builder.buffer({"A", DType::fp16, 5, 7, 5, 7})),
        b(builder.buffer({"B", DType::fp16, 7, 9, 7, 9})),
        c(builder.buffer({"C", DType::fp16, 5, 9, 5, 9})) {
    builder.input(builder.whole(a));
    builder.input(builder.whole(b));
  }
  ScheduleBuilder builder;
  std::int16_t a, b, c;
};

class Evaluated {
 public:
  explicit Evaluated(ThreeRanks& draft) : schedule_(draft.builder.finish()), memory_(schedule_) {
    fill_inputs(schedule_, 3, memory_);
    reference_.emplace(schedule_, memory_);
  }
  Eigen::MatrixXd input(std::int16_t buffer, int rank) const {
    const Buffer& whole = schedule_.buffers[static_cast<std::size_t>(buffer)];
    return memory_.read({buffer, rank, {0, 0, whole.rows, whole.cols}});
  }
  // As if the schedule had written this.
  void write(const Region& region, const Eigen::MatrixXd& values) { memory_.fill(region, values); }
  double error(int rank) const { return reference_->error_on(rank, memory_); }

 private:
  Schedule schedule_;
  FunctionalMemory memory_;
  std::optional<FunctionalReference> reference_;
};

// The region is expected to hold `want`: an error of one element shows, and so do unwritten ones.
void expect_held(Evaluated& run, const Region& region, Eigen::MatrixXd want) {
  EXPECT_TRUE(std::isinf(run.error(region.rank)));
  run.write(region, want);
  EXPECT_LT(run.error(region.rank), kAlmostExact);
  const double largest = want.cwiseAbs().maxCoeff();
  want(want.rows() - 1, want.cols() - 1) += 0.01 * largest;
  run.write(region, want);
  EXPECT_NEAR(run.error(region.rank), 0.01, kAlmostExact);
}

TEST(Reference, AProductIsEigensOfPartsOfTheOperandsOfTheirRanks) {
  ThreeRanks d;
  d.builder.expect_product({d.c, 2, {1, 3, 3, 4}}, {d.a, 0, {2, 1, 3, 5}}, {d.b, 1, {2, 0, 5, 4}});
  Evaluated run(d);
  expect_held(run, {d.c, 2, {1, 3, 3, 4}},
              run.input(d.a, 0).block(2, 1, 3, 5) * run.input(d.b, 1).block(2, 0, 5, 4));
  EXPECT_EQ(run.error(0), 0);  // nothing is expected there
}

TEST(Reference, AProductOnEveryRankIsExpectedOnEach) {
  ThreeRanks d;
  d.builder.expect_product(d.builder.whole(d.c), d.builder.whole(d.a, 1), d.builder.whole(d.b, 1));
  Evaluated run(d);
  for (int rank = 0; rank < 3; ++rank) {
    expect_held(run, {d.c, rank, {0, 0, 5, 9}}, run.input(d.a, 1) * run.input(d.b, 1));
  }
}

TEST(Reference, ProductsAddUp) {
  ThreeRanks d;
  for (int rank = 0; rank < 3; ++rank) {
    d.builder.expect_product(d.builder.whole(d.c), d.builder.whole(d.a, rank), d.builder.whole(d.b, rank),
                             rank > 0);
  }
  Evaluated run(d);
  Eigen::MatrixXd want = Eigen::MatrixXd::Zero(5, 9);
  for (int rank = 0; rank < 3; ++rank) want += run.input(d.a, rank) * run.input(d.b, rank);
  expect_held(run, {d.c, 1, {0, 0, 5, 9}}, want);
}

TEST(Reference, ACopyTakesAPartOfARankAndCopiesAddUp) {
  ThreeRanks d;
  const Region to{d.c, 0, {1, 1, 4, 3}};
  d.builder.expect_copy(to, {d.a, 2, {0, 4, 4, 3}});
  d.builder.expect_copy(to, {d.b, 1, {3, 6, 4, 3}}, true);
  Evaluated run(d);
  expect_held(run, to, run.input(d.a, 2).block(0, 4, 4, 3) + run.input(d.b, 1).block(3, 6, 4, 3));
}

TEST(Reference, ASumIsOverAllRanks) {
  ThreeRanks d;
  const Region to{d.c, 1, {0, 2, 5, 7}};
  d.builder.expect_sum(to, d.builder.whole(d.a));
  Evaluated run(d);
  expect_held(run, to, run.input(d.a, 0) + run.input(d.a, 1) + run.input(d.a, 2));
}

TEST(Reference, OperationsReadWhatEarlierOnesWroteAndLaterOnesCount) {
  ThreeRanks d;
  const Region left{d.c, 0, {0, 0, 5, 7}};
  d.builder.expect_copy(left, d.builder.whole(d.a, 1));
  d.builder.expect_product({d.c, 1, {0, 0, 5, 9}}, left, d.builder.whole(d.b, 0));  // of what is there now
  d.builder.expect_copy({d.c, 0, {0, 0, 2, 7}}, {d.a, 2, {0, 0, 2, 7}});
  Evaluated run(d);
  expect_held(run, {d.c, 1, {0, 0, 5, 9}}, run.input(d.a, 1) * run.input(d.b, 0));
  Eigen::MatrixXd want = run.input(d.a, 1);
  want.topRows(2) = run.input(d.a, 2).topRows(2);
  expect_held(run, left, want);
}

TEST(Reference, AnInputThatIsOverwrittenIsReadAsItWasAtFirst) {
  ThreeRanks d;
  d.builder.expect_sum(d.builder.whole(d.a), d.builder.whole(d.a));  // an all-reduce in place
  Evaluated run(d);
  const Eigen::MatrixXd want = run.input(d.a, 0) + run.input(d.a, 1) + run.input(d.a, 2);
  EXPECT_GT(run.error(1), 0.1);
  run.write({d.a, 1, {0, 0, 5, 7}}, want);
  EXPECT_LT(run.error(1), kAlmostExact);
}

// C = A·B of buffers in fp64: nothing of the 53 digits is lost, in the inputs or on the way.
TEST(FunctionalReference, KeepsAllDigitsOfFp64) {
  ScheduleBuilder builder("wide", 1);
  const std::int16_t a = builder.buffer({"A", DType::fp64, 5, 7, 5, 7});
  const std::int16_t b = builder.buffer({"B", DType::fp64, 7, 9, 7, 9});
  const std::int16_t c = builder.buffer({"C", DType::fp64, 5, 9, 5, 9});
  builder.input(builder.whole(a));
  builder.input(builder.whole(b));
  builder.expect_product(builder.whole(c), builder.whole(a, 0), builder.whole(b, 0));
  const Schedule schedule = builder.finish();
  FunctionalMemory memory(schedule);
  fill_inputs(schedule, 3, memory);
  const FunctionalReference reference(schedule, memory);
  const Eigen::MatrixXd left = memory.read({a, 0, {0, 0, 5, 7}});
  EXPECT_NE(left, left.cast<float>().cast<double>());
  const Eigen::MatrixXd want = left * memory.read({b, 0, {0, 0, 7, 9}});
  memory.fill({c, 0, {0, 0, 5, 9}}, want);
  EXPECT_LT(reference.error_on(0, memory), 1e-15);
  memory.fill({c, 0, {0, 0, 5, 9}}, want.cast<float>().cast<double>());
  EXPECT_GT(reference.error_on(0, memory), 1e-9);
}

TEST(Inputs, HoldTheSameNumbersWhereTheySaySo) {
  ThreeRanks d;
  d.builder.input(d.builder.whole(d.c), InputValues::same);
  Schedule schedule = d.builder.finish();
  schedule.inputs[1].region.rect = schedule.inputs[0].region.rect;
  schedule.inputs[1].group = schedule.inputs[0].group;
  FunctionalMemory memory(schedule);
  fill_inputs(schedule, 3, memory);
  const Rect rect{0, 0, 5, 7};
  EXPECT_EQ(memory.read({d.a, 1, rect}), memory.read({d.b, 1, rect}));
  EXPECT_NE(memory.read({d.a, 1, rect}), memory.read({d.a, 2, rect}));
  EXPECT_EQ(memory.read({d.c, 1, rect}), memory.read({d.c, 2, rect}));
  EXPECT_LE(memory.read({d.c, 1, rect}).cwiseAbs().maxCoeff(), 1);
}

Machine machine_of_eight_units() {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;
  machine.gpu.cus_per_xcd = 4;
  return machine;
}

void expect_as_referenced(const Schedule& schedule) {
  const FunctionalResult result = execute_functionally(schedule, machine_of_eight_units(), 5);
  EXPECT_TRUE(result.stale_reads.empty()) << result.stale_reads.front();
  EXPECT_LT(result.max_relative_error, kAlmostExact) << schedule.name << " on " << schedule.ranks;
}

TEST(FunctionalReference, AnAllGatherInPlaceAndItsProductAreRightOnOneToFourRanks) {
  for (const int ranks : {1, 2, 3, 4}) {
    expect_as_referenced(all_gather_gemm({ranks, 16, 32, 32}));
    expect_as_referenced(all_gather_gemm({ranks, 7, 29, 19}));
  }
}

TEST(FunctionalReference, ASliceThatIsInNoInputIsReadStale) {
  Schedule schedule = all_gather_gemm({});
  schedule.inputs.erase(schedule.inputs.begin() + 2);  // rows 16 to 32 of A on rank 1
  schedule.reference.resize(1);                        // of rank 0's slice
  const FunctionalResult result = execute_functionally(schedule, machine_of_eight_units(), 5);
  ASSERT_FALSE(result.stale_reads.empty());
  EXPECT_NE(result.stale_reads.front().find("was never written"), std::string::npos)
      << result.stale_reads.front();
}

TEST(FunctionalReference, AScheduleThatComputesHalfOfKIsWrong) {
  Schedule schedule = all_gather_gemm({});
  for (Op& op : schedule.ops) {
    if (op.kind == OpKind::matmul) op.k_end /= 2;
  }
  EXPECT_GT(execute_functionally(schedule, machine_of_eight_units(), 5).max_relative_error, 0.1);
}

TEST(FunctionalReference, AnAllGatherThatSendsTheWrongRowsIsWrong) {
  AllGather workload;
  workload.rows = 37;
  workload.cols = 24;
  workload.gpus = 4;
  GemmKnobs knobs;
  knobs.comm_cus = 3;
  knobs.comm_tile_m = knobs.comm_tile_n = 16;
  for (const bool library : {false, true}) {
    Schedule schedule = library ? library_all_gather_schedule(workload, machine_of_eight_units())
                                : all_gather_schedule(workload, knobs);
    expect_as_referenced(schedule);
    for (Op& op : schedule.ops) {
      if (op.kind == OpKind::load && op.rect.row > 0) op.rect.row -= 1;
      if (op.kind == OpKind::copy && op.src_row > 0) op.src_row -= 1;
    }
    EXPECT_GT(execute_functionally(schedule, machine_of_eight_units(), 5).max_relative_error, 0.1);
  }
}

TEST(FunctionalReference, SumsOntoZerosAreAReduceScatter) {
  for (const int ranks : {1, 2, 4}) expect_as_referenced(gemm_reduce_scatter({ranks, 16, 48, 32}));
}

TEST(FunctionalReference, ASavedScheduleWithoutReferenceIsExecutedAsEver) {
  for (const char* pattern : {"bulk-synchronous", "producer-consumer", "library"}) {
    GemmKnobs knobs;
    knobs.tile_m = knobs.tile_n = knobs.tile_k = 16;
    knobs.waves = 4;
    std::string text =
        schedule_to_json(build(pattern, {45, 83, 29, DType::fp16, 4}, machine_of_eight_units(), knobs));
    const auto begin = text.find("\"inputs\"");
    text.erase(begin, text.find("\"flags\"") - begin);
    expect_as_referenced(schedule_from_json(text, "old.json"));
  }
}

TEST(FunctionalReference, OneThatIsTooLargeToHoldIsRefused) {
  ScheduleBuilder builder("large", 1);
  const auto a = builder.buffer({"A", DType::fp16, 1 << 12, 1 << 12, 64, 64});
  builder.input(builder.whole(a));
  for (int i = 0; i < 20; ++i) builder.expect_copy(builder.whole(a), builder.whole(a, 0));
  const Schedule schedule = builder.finish();
  EXPECT_THROW(FunctionalExecutor(schedule, 1), UserError);
}

}  // namespace
}  // namespace tritax
