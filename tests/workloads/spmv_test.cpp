// SpMV: every schedule leaves Eigen's product, whatever the matrix, and the checker finds nothing; what each
// is said to wait for, it does.
#include "model/workloads/spmv/workload.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "model/cost/lane_steps.hpp"
#include "model/machine/find_machine.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"
#include "model/select/bounds.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

Problem spmv_problem(const std::map<std::string, std::int64_t>& values) {
  Problem problem = problem_of(spmv());
  for (const auto& [field, value] : values) problem.values.give(field, value);
  complete_problem(problem, "test");
  return problem;
}

Schedule spmv_schedule(std::string_view pattern, const Problem& problem, const Machine& machine) {
  return build_schedule(find_pattern(spmv(), pattern, "test"), problem, machine,
                        resolved_knobs(problem, machine, {}));
}

double simulated_us(std::string_view pattern, const Problem& problem, const Machine& machine) {
  return simulate(spmv_schedule(pattern, problem, machine), machine).makespan_ns / 1e3;
}

RC_GTEST_PROP(Spmv, LeavesEigensProductByEverySchedule, ()) {
  Machine machine = find_machine(*rc::gen::element("mi300x-8", "h100-4"));
  machine.gpu.cus_per_xcd = *rc::gen::inRange(1, 5);  // so that matrices of this size fill it
  const Problem problem = spmv_problem({{"rows", *rc::gen::inRange(1, 400)},
                                        {"cols", *rc::gen::inRange(1, 400)},
                                        {"row_length", *rc::gen::inRange(1, 30)},
                                        {"structure", *rc::gen::inRange(0, 4)},
                                        {"exponent", *rc::gen::inRange(120, 300)},
                                        {"matrix_seed", *rc::gen::inRange(0, 1000)}});
  Values knobs(spmv().knobs);
  knobs.give("workgroup_threads", *rc::gen::element(32, 64, 128));
  knobs.give("items", *rc::gen::inRange(1, 8));
  knobs.give("lanes", *rc::gen::element(8, 32, 64));
  knobs.give("chunk", *rc::gen::inRange(1, 100));
  knobs.give("short_row", *rc::gen::inRange(1, 10));
  knobs.give("long_row", *rc::gen::inRange(10, 40));
  for (const Pattern& pattern : spmv().patterns) {
    const Schedule schedule =
        build_schedule(pattern, problem, machine, resolved_knobs(problem, machine, knobs));
    require_sound(check_schedule(schedule), std::string(pattern.name));
    require_sound(check_schedule_on(schedule, machine), std::string(pattern.name));
    const FunctionalResult result = execute_functionally(schedule, machine, 7);
    RC_ASSERT(result.stale_reads.empty());
    RC_ASSERT(result.max_relative_error < 1e-5);
    const TimeBound bound = time_bound(schedule, machine, build_topology(machine, 1));
    RC_ASSERT(simulate(schedule, machine).makespan_ns >= bound.total_ns * (1 - 1e-9));
  }
}

TEST(Spmv, ComesBackFromJsonAsItWas) {
  const Machine machine = find_machine("h100-4");
  const Problem problem = spmv_problem({{"rows", 300}, {"structure", 1}});
  for (const Pattern& pattern : spmv().patterns) {
    const Schedule schedule = spmv_schedule(pattern.name, problem, machine);
    const std::string json_text = schedule_to_json(schedule);
    const Schedule again = schedule_from_json(json_text, "test");
    EXPECT_EQ(schedule_to_json(again), json_text) << pattern.name;
    EXPECT_EQ(simulate(again, machine).makespan_ns, simulate(schedule, machine).makespan_ns) << pattern.name;
  }
}

// A row of 200,000 nonzeros on one lane, at what U = 4 steps under way allow: no schedule that gives rows to
// lanes is faster than its longest row, and those that share it out are.
TEST(Spmv, WaitsForTheLongestRowWhereALaneHasIt) {
  const Machine machine = find_machine("h100-4");
  const Problem problem = spmv_problem(
      {{"rows", 1 << 17}, {"row_length", 8}, {"structure", 1}, {"exponent", 180}, {"matrix_seed", 3}});
  const double thread = simulated_us("thread-mapped", problem, machine);
  EXPECT_GT(thread, 5 * simulated_us("merge-path", problem, machine));
  EXPECT_GT(thread, 5 * simulated_us("work-oriented", problem, machine));
  EXPECT_GT(thread, 2 * simulated_us("bucketing", problem, machine));
}

// Short even rows: nothing to balance, and no search to pay for.
TEST(Spmv, IsFastestByLanesWhereRowsAreShortAndEven) {
  const Machine machine = find_machine("h100-4");
  const Problem problem = spmv_problem({{"rows", 2000}, {"row_length", 4}, {"structure", 2}});
  EXPECT_LT(simulated_us("thread-mapped", problem, machine), simulated_us("merge-path", problem, machine));
}

// Values and columns come from memory once, whichever workgroup takes them.
TEST(Spmv, TakesNoLessThanItsBytesFromMemory) {
  const Machine machine = find_machine("h100-4");
  const Problem problem = spmv_problem({{"rows", 1 << 18}, {"row_length", 16}, {"structure", 2}});
  const double nonzeros = work_of(problem).flops / 2;
  const double least_us = nonzeros * 8 / machine.gpu.hbm_gb_per_s / 1e3;
  for (const Pattern& pattern : spmv().patterns) {
    EXPECT_GT(simulated_us(pattern.name, problem, machine), least_us) << pattern.name;
  }
}

SparseMatrix two_rows(std::int32_t first, std::int32_t second) {
  SparseMatrix matrix{"two", 2, 1 << 16, {0, first, first + second}, {}};
  for (std::int32_t row = 0; row < 2; ++row) {
    for (std::int32_t k = 0; k < matrix.length(row); ++k) matrix.columns.push_back(k);
  }
  return matrix;
}

Op product_of(const SparseMatrix& matrix, LaneSharing sharing, std::int32_t lanes) {
  Op op;
  op.kind = OpKind::sparse_product;
  op.rect = {0, 0, matrix.rows, 1};
  op.k_end = matrix.nonzeros();
  op.src_row = static_cast<std::int32_t>(sharing);
  op.value = lanes;
  return op;
}

// By hand: rows of 100 and 10 nonzeros, 64 threads in waves of 32.
TEST(LaneSteps, AreThoseOfTheSlowestLaneOfEachWave) {
  const SparseMatrix matrix = two_rows(100, 10);
  const auto steps = [&](LaneSharing sharing, std::int32_t lanes) {
    return lane_steps(matrix, product_of(matrix, sharing, lanes), 64, 32, 4, true);
  };
  EXPECT_EQ(steps(LaneSharing::row, 1).longest, 100);
  // Values and columns of 4 bytes: a line of its own for each of 100, and 10 · 40 / 128 lines for the others.
  EXPECT_DOUBLE_EQ(steps(LaneSharing::row, 1).lookups, 2 * (100 + 10 * 40.0 / 128));
  EXPECT_EQ(steps(LaneSharing::row, 1).all, 100);       // both rows lie in the first wave
  EXPECT_EQ(steps(LaneSharing::group, 32).longest, 4);  // ceil(110 / 32)
  EXPECT_EQ(steps(LaneSharing::even, 1).longest, 2);    // ceil(112 / 64)
  EXPECT_EQ(steps(LaneSharing::even, 1).all, 4);
  EXPECT_NEAR(steps(LaneSharing::vector, 32).longest, 4 + 5.0 / 8, 1e-9);  // ceil(100 / 32), and log2 32
}

// By hand: batches of 4 steps of 32 lanes. A row of 1000 goes on over six batches without a beginning.
TEST(LaneSteps, OfGroupsScanWhereRowsBeginAndAddUpTheRest) {
  const auto steps = [](std::int32_t first, std::int32_t second, std::int32_t lanes) {
    const SparseMatrix matrix = two_rows(first, second);
    return lane_steps(matrix, product_of(matrix, LaneSharing::group, lanes), 64, 32, 4, false);
  };
  EXPECT_EQ(steps(100, 10, 32).waits, 1 + 5 + 1);
  EXPECT_EQ(steps(100, 10, 32).exchanges, 4 * (2 + 5 + 1));
  EXPECT_EQ(steps(1000, 10, 32).longest, 4 * 8);  // ceil(1010 / 128) batches
  EXPECT_EQ(steps(1000, 10, 32).waits, 2 * (1 + 5 + 1) + 5);
  // Two waves have 505 each: the first a row that goes on behind its end, which both add up.
  EXPECT_EQ(steps(1000, 10, 64).longest, 4 * 4);
  EXPECT_EQ(steps(1000, 10, 64).all, 2 * 4 * 4);
  EXPECT_EQ(steps(1000, 10, 64).waits, (1 + 5 + 1) + 5 + 2);
}

// By hand: 64 lanes on 2 rows of 110 nonzeros. Row ends in LDS, or first to be fetched.
TEST(LaneSteps, OfEvenSharesSearchAndWaitForTheEndsOfRows) {
  const SparseMatrix matrix = two_rows(100, 10);
  const Op op = product_of(matrix, LaneSharing::even, 1);
  const LaneSteps staged = lane_steps(matrix, op, 64, 32, 4, true);
  const double ends = 110.0 / 64 * (1 - std::pow(1 - 2.0 / 110, 32));
  EXPECT_NEAR(staged.waits, 2 * 7 + ends + 5 + 1 + 2, 1e-9);
  EXPECT_EQ(staged.cold, 0);
  EXPECT_NEAR(staged.exchanges, 2 * (2 * 5 + 1 + 2 * 7 + ends), 1e-9);
  const LaneSteps fetched = lane_steps(matrix, op, 64, 32, 4, false);
  EXPECT_EQ(fetched.waits, staged.waits);
  EXPECT_EQ(fetched.cold, 1);
  EXPECT_EQ(fetched.exchanges, 2 * (2 * 5 + 1));
}

TEST(SparseMatrixCheck, RefusesWhatIsNoMatrix) {
  const Machine machine = find_machine("h100-4");
  Schedule schedule = spmv_schedule("thread-mapped", spmv_problem({{"rows", 8}}), machine);
  SparseMatrix broken = *schedule.sparse[0];
  broken.columns[3] = broken.cols;
  schedule.sparse[0] = std::make_shared<const SparseMatrix>(broken);
  const std::vector<Finding> findings = check_schedule(schedule);
  ASSERT_FALSE(findings.empty());
  EXPECT_NE(findings.front().message.find("column 8 of nonzero 3; there are 8 columns"), std::string::npos)
      << findings.front().message;
}

}  // namespace
}  // namespace tritax
