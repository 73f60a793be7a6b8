// The evaluator: bound first, an early end, no proposal simulated twice.
#include "sim/study/evaluator.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

class EvaluatorTest : public testing::Test {
 protected:
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = problem_of(GemmAllScatter{512, 512, 512, DType::fp16, 2});
  const Choices choices = choices_of(problem, machine, {});
  const std::unique_ptr<Evaluator> owner = std::make_unique<Evaluator>(choices, EvaluatorOptions());
  Evaluator& evaluator = *owner;

  Proposal start(std::size_t pattern) const {
    const KnobSpace& space = *choices.patterns[pattern].space;
    return {pattern, *compose(space, start_of(space))};
  }
  Trial try_one(const Proposal& proposal) { return evaluator.evaluate(std::span(&proposal, 1)).front(); }
};

TEST_F(EvaluatorTest, TheTimeIsThatOfASimulation) {
  const Trial trial = try_one(start(1));
  EXPECT_EQ(trial.outcome, Outcome::simulated);
  EXPECT_EQ(trial.time_ns, simulate(evaluator.build(1, start(1).knobs), machine).makespan_ns);
  EXPECT_GT(trial.bound.total_ns, 0);
  EXPECT_LE(trial.bound.total_ns, trial.time_ns);
  ASSERT_TRUE(evaluator.best(1));
  EXPECT_EQ(evaluator.best(1)->knobs, start(1).knobs);
  EXPECT_FALSE(evaluator.best(0));
}

TEST_F(EvaluatorTest, WhatIsKnownIsNotSimulatedAgain) {
  const double time_ns = try_one(start(1)).time_ns;
  EXPECT_EQ(try_one(start(1)).time_ns, time_ns);
  Proposal hopeless = start(1);
  hopeless.give_up_after_ns = time_ns / 2;
  EXPECT_EQ(try_one(hopeless).time_ns, time_ns);
  EXPECT_EQ(evaluator.evaluated(), 1);
}

TEST_F(EvaluatorTest, WhatGaveUpIsTriedAgainOnlyWithMoreTime) {
  const double time_ns = simulate(evaluator.build(1, start(1).knobs), machine).makespan_ns;
  Proposal proposal = start(1);
  proposal.give_up_after_ns = 0.999 * time_ns;  // above its bound, which would spare the run
  EXPECT_EQ(try_one(proposal).outcome, Outcome::gave_up);
  proposal.give_up_after_ns = time_ns / 3;
  EXPECT_EQ(try_one(proposal).outcome, Outcome::gave_up);
  EXPECT_EQ(evaluator.evaluated(), 1);
  EXPECT_EQ(evaluator.given_up(), 1);
  EXPECT_FALSE(evaluator.best(1));
  proposal.give_up_after_ns = 0;
  EXPECT_EQ(try_one(proposal).time_ns, time_ns);
  EXPECT_EQ(evaluator.evaluated(), 2);
}

TEST_F(EvaluatorTest, ABoundAboveTheTimeThatItMayTakeSparesTheSimulation) {
  Proposal proposal = start(1);
  proposal.bound_only = true;
  const double bound_ns = try_one(proposal).bound.total_ns;
  proposal.bound_only = false;
  proposal.give_up_after_ns = 0.999 * bound_ns;
  EXPECT_EQ(try_one(proposal).outcome, Outcome::pruned);
  EXPECT_EQ(evaluator.evaluated(), 0);
  proposal.give_up_after_ns = 0;
  EXPECT_EQ(try_one(proposal).outcome, Outcome::simulated);
}

TEST_F(EvaluatorTest, ABoundThatIsNotBelowWhatHasToBeBeatenSparesTheSimulation) {
  Proposal proposal = start(1);
  proposal.bound_only = true;
  const Trial bounded = try_one(proposal);
  EXPECT_EQ(bounded.outcome, Outcome::bounded);
  proposal.bound_only = false;
  proposal.worth_ns = bounded.bound.total_ns;
  EXPECT_EQ(try_one(proposal).outcome, Outcome::pruned);
  EXPECT_EQ(evaluator.evaluated(), 0);
  EXPECT_EQ(evaluator.pruned(), 1);
  proposal.worth_ns = bounded.bound.total_ns * 1.001;
  EXPECT_EQ(try_one(proposal).outcome, Outcome::simulated);
}

TEST_F(EvaluatorTest, WhatCannotBeBuiltIsRefusedAndTheFirstReasonIsKept) {
  Proposal proposal = start(1);
  proposal.knobs.assume("tile_m", 512);
  proposal.knobs.assume("tile_n", 512);
  EXPECT_EQ(try_one(proposal).outcome, Outcome::refused);
  EXPECT_FALSE(evaluator.refusal(1).empty());
  EXPECT_TRUE(evaluator.refusal(2).empty());
  EXPECT_EQ(evaluator.evaluated(), 0);
}

TEST_F(EvaluatorTest, OfEveryPatternTheFastestIsKept) {
  std::vector<Proposal> proposals;
  double fastest_ns = kNever;
  for (Option& option : coarse_choices(*choices.patterns[1].space)) {
    if (proposals.size() < 6) proposals.push_back({1, std::move(option.knobs)});
  }
  for (const Trial& trial : evaluator.evaluate(proposals)) fastest_ns = std::min(fastest_ns, trial.time_ns);
  EXPECT_EQ(evaluator.best(1)->time_ns(), fastest_ns);
}

}  // namespace
}  // namespace tritax
