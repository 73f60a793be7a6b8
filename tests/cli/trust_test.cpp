// Sentences about how far to trust an answer: ties, their band, and the effect of seeds.
#include "cli/trust.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "model/core/codec.hpp"
#include "model/workloads/registry.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax::cli {
namespace {

using testing::HasSubstr;

class TrustSentences : public testing::Test {
 protected:
  const Machine machine = find_machine("h200-4");
  const Problem problem = a_problem();

  static Problem a_problem() {
    Problem problem = problem_of(*workloads().front());
    for (const std::string_view size : {"m", "n", "k"}) problem.values.give(size, 4096);
    problem.values.give("gpus", 4);
    return problem;
  }

  // A second candidate that is slower by this share.
  std::vector<Candidate> candidates_apart(double share) const {
    std::vector<Candidate> candidates(2);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      candidates[i].pattern = &problem.workload->patterns[i];
      candidates[i].time_ns = i == 0 ? 100e3 : 100e3 * (1 + share);
    }
    return candidates;
  }
};

TEST_F(TrustSentences, SpreadOfTheFirstWidensTheBandAndMakesTies) {
  std::vector<Candidate> candidates = candidates_apart(1);
  const double band = assess(problem, machine, candidates).band;
  ASSERT_GT(band, 0);
  candidates = candidates_apart(1.1 * band);
  const Assessment certain = assess(problem, machine, candidates);
  EXPECT_EQ(certain.tied_with, (std::vector<int>{1, 2}));
  candidates[0].spread = {1, {100e3, 100e3 * (1 + 2 * band)}};
  const Assessment assessment = assess(problem, machine, candidates);
  EXPECT_DOUBLE_EQ(assessment.band, widened(certain.band, candidates[0].spread.relative()));
  EXPECT_EQ(assessment.tied_with, (std::vector<int>{1, 1}));
  const std::string said = sentences_of(assessment, candidates)[0];
  EXPECT_THAT(said, HasSubstr(fmt::format("prediction band of {:.0f} %", 100 * assessment.bands[0])));
}

TEST_F(TrustSentences, SpreadIsToldWhereItIsMoreThanNoise) {
  std::vector<Candidate> candidates = candidates_apart(0.5);
  candidates[0].spread = {1, {100e3, 100.5e3, 100.2e3}};
  candidates[1].spread = {1, {150e3, 165e3, 152e3}};
  const Assessment assessment = assess(problem, machine, candidates);
  std::string all;
  for (const std::string& sentence : sentences_of(assessment, candidates)) all += sentence + '\n';
  EXPECT_THAT(all, HasSubstr("seeds 1 to 3 give 150.0 to 165.0 us"));
  EXPECT_THAT(all, testing::Not(HasSubstr("100.5")));
}

// A coded run is cautioned once, however many candidates are coded, and no verdict says that it pays.
TEST(Untimed, CodingIsACautionThatKeepsAVerdictFromPaying) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = problem_of(find_workload("all-reduce", "test"));
  std::vector<Candidate> candidates(3);
  const char* names[] = {"two-shot", "one-shot", "library"};
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].pattern = &find_pattern(*problem.workload, names[i], "test");
    candidates[i].knobs = resolved_knobs(problem, machine, {});
    candidates[i].time_ns = 1e5 * std::pow(100.0, static_cast<double>(i));
    candidates[i].searched = true;
  }
  const auto cautions = [&] { return assess(problem, machine, candidates).trust.cautions; };
  const std::size_t plain = cautions().size();
  for (std::size_t i = 0; i < 2; ++i)
    candidates[i].knobs.give("wire", static_cast<std::int64_t>(Codec::int8));
  const Assessment coded = assess(problem, machine, candidates);
  ASSERT_EQ(coded.trust.cautions.size(), plain + 1);
  EXPECT_THAT(coded.trust.cautions.back(), HasSubstr("Coding and decoding take no time"));
  EXPECT_NE(verdict_of(problem, candidates, coded).verdict, Verdict::pays);
}

// The library's gather on four H200, whose links stay full to the end, called by a framework.
TEST(SpreadSentence, ARunSaysHowFarOtherSeedsGo) {
  const test::Outcome outcome = test::run_tritax(
      "simulate --pattern library --form eager-slices -M 4096 -N 4096 -K 512 --machine h200-4 --gpus 4");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("random shares of full links: seeds 1 to 5 give "));
}

}  // namespace
}  // namespace tritax::cli
