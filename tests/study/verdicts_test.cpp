#include "sim/study/verdicts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {
namespace {

// A verdict as the file has it, and judged.
JudgedQuestion judged(double published_ratio, std::optional<double> predicted_ratio) {
  JudgedQuestion verdict;
  verdict.published_ratio = published_ratio;
  verdict.predicted_ratio = predicted_ratio;
  judge(verdict);
  return verdict;
}

// Two ways that take long enough to simulate fast: stores of 1 MiB, and loads of as much.
const std::string kEntries = R"(
[defaults]
group = "g"
scenario = { machine = "mi300x-8", workload = "remote-access", peers = "one", bytes = "1 MiB" }
metric = "time"
unit = "us"
source = "somewhere"
[[entry]]
id = "store"
scenario = { operation = "store" }
value = 30
[[entry]]
id = "load"
scenario = { operation = "load" }
value = 60
[[entry]]
id = "rate"
scenario = { operation = "load" }
metric = "bandwidth"
unit = "GB/s"
value = 17
[[entry]]
id = "ratio"
scenario = { operation = "store" }
reference = { operation = "load" }
metric = "speedup"
unit = "x"
value = 2
)";

const std::string kOwn = R"(
[verdict_defaults]
family = "stores or loads"
source = "somewhere"
scenario = { machine = "mi300x-8", workload = "remote-access", peers = "one", bytes = "1 MiB" }
ways = [{ operation = "store" }, { operation = "load" }]
)";

const std::string kPair = R"(
[[verdict]]
id = "pair"
family = "stores or loads"
)";

PublishedNumbers numbers(const std::string& toml) { return parse_published_numbers(toml, "file.toml"); }

void expect_verdict_refused(const std::string& toml, const std::vector<std::string>& words) {
  try {
    numbers(toml);
    ADD_FAILURE() << "accepted: " << toml;
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << message << "\nlacks " << word;
    }
  }
}

TEST(Verdict, IsRightWhereBothTimesNameTheSameWay) {
  EXPECT_EQ(judged(1.5, 1.1).outcome, VerdictOutcome::right);
  EXPECT_EQ(judged(0.5, 0.9).outcome, VerdictOutcome::right);
  EXPECT_EQ(judged(1.5, 0.9).outcome, VerdictOutcome::wrong);
  EXPECT_EQ(judged(0.5, 1.1).outcome, VerdictOutcome::wrong);
  EXPECT_EQ(judged(0.5, std::nullopt).outcome, VerdictOutcome::failed);
}

TEST(Verdict, IsATieWhereEitherDifferenceIsSmallWhicheverWayItPoints) {
  for (const double small : {1.0, 1.029, 1 / 1.029}) {
    for (const double large : {1.5, 0.5}) {
      EXPECT_EQ(judged(small, large).outcome, VerdictOutcome::tie) << small << ' ' << large;
      EXPECT_EQ(judged(large, small).outcome, VerdictOutcome::tie) << large << ' ' << small;
    }
  }
  EXPECT_EQ(judged(1.031, 1.031).outcome, VerdictOutcome::right);
  EXPECT_EQ(judged(1 / 1.031, 1.031).outcome, VerdictOutcome::wrong);
}

TEST(Verdict, CostsWhatThePredictedChoiceReallyTakesLonger) {
  EXPECT_DOUBLE_EQ(judged(1.25, 0.5).cost, 0.25);
  EXPECT_DOUBLE_EQ(judged(0.8, 2).cost, 0.25);
  EXPECT_DOUBLE_EQ(judged(0.8, 0.1).cost, 0);
  EXPECT_DOUBLE_EQ(judged(0.8, 1.01).cost, 0.25) << "a predicted tie chooses all the same";
}

TEST(Verdict, ThatPaysAndLosesIsMarkedBeyondTenPercent) {
  EXPECT_TRUE(judged(0.8, 1.2).pays_but_loses);
  EXPECT_FALSE(judged(0.95, 1.2).pays_but_loses) << "loses by 5 %";
  EXPECT_FALSE(judged(0.8, 1.02).pays_but_loses) << "says tie";
  EXPECT_FALSE(judged(1.25, 0.8).pays_but_loses) << "advises against what would pay";
}

TEST(Score, CountsEveryQuestionOnce) {
  std::vector<JudgedQuestion> verdicts{judged(1.5, 2), judged(1.5, 1), judged(0.8, 1.5), judged(1.05, 0.9),
                                       judged(2, std::nullopt)};
  verdicts[0].family = verdicts[1].family = "a";
  verdicts[2].family = verdicts[3].family = verdicts[4].family = "b";
  const Score score = score_of("all", verdicts);
  EXPECT_EQ(score.questions, 5u);
  EXPECT_EQ(score.right, 1u);
  EXPECT_EQ(score.tie, 1u);
  EXPECT_EQ(score.wrong, 2u);
  EXPECT_EQ(score.failed, 1u);
  EXPECT_EQ(score.clear, 4u) << "all but the one that differs by 5 %";
  EXPECT_EQ(score.clear_right, 1u);
  EXPECT_EQ(score.clear_right_or_tie, 2u);
  EXPECT_EQ(score.says_it_pays, 2u);
  EXPECT_EQ(score.pays_but_loses, 1u);
  EXPECT_NEAR(score.mean_cost, (0 + 0.5 + 0.25 + 0.05) / 4, 1e-12);
  EXPECT_DOUBLE_EQ(score.worst_cost, 0.5);
  const std::vector<Score> families = scores_by_family(verdicts);
  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(families[0].family, "a");
  EXPECT_EQ(families[0].questions + families[1].questions, 5u);
}

TEST(Verdicts, OfTwoRowsOfOneThatComparesAndOfOwnScenariosAgree) {
  const std::string own = kOwn + "[[verdict]]\nid = \"times\"\ntimes = [30, 60]\nunit = \"us\"\n" +
                          "[[verdict]]\nid = \"own ratio\"\nratio = 2\n";
  const Reproduced of_own = reproduce(numbers(own));
  ASSERT_EQ(of_own.verdicts.size(), 2u);
  EXPECT_TRUE(of_own.rows.empty()) << "what a verdict brings along is no row";
  const Reproduced of_rows = reproduce(numbers(
      kEntries + kPair + "rows = [\"store\", \"load\"]\n" +
      "[[verdict]]\nid = \"one\"\nfamily = \"f\"\nrows = \"ratio\"\nnames = [\"stores\", \"loads\"]\n"));
  ASSERT_EQ(of_rows.verdicts.size(), 2u);
  EXPECT_EQ(of_rows.rows.size(), 4u);
  for (const JudgedQuestion& verdict :
       {of_own.verdicts[0], of_own.verdicts[1], of_rows.verdicts[0], of_rows.verdicts[1]}) {
    EXPECT_DOUBLE_EQ(verdict.published_ratio, 2) << verdict.id;
    ASSERT_TRUE(verdict.predicted_ratio) << verdict.id;
    EXPECT_DOUBLE_EQ(*verdict.predicted_ratio, *of_own.verdicts[0].predicted_ratio) << verdict.id;
    EXPECT_EQ(verdict.source, "somewhere");
  }
  EXPECT_EQ(of_rows.verdicts[0].first, "store") << "the ids, where both have one pattern";
  EXPECT_EQ(of_rows.verdicts[1].first, "stores");
}

TEST(Verdicts, AreAGroupThatKeepsWhatTheyName) {
  const std::string text = kEntries + kPair + "rows = [\"load\", \"store\"]\n";
  PublishedNumbers of_verdicts = numbers(text);
  keep_group(of_verdicts, "verdicts", "--group");
  EXPECT_EQ(of_verdicts.entries.size(), 2u);
  EXPECT_EQ(of_verdicts.verdicts.size(), 1u);
  PublishedNumbers of_group = numbers(text);
  keep_group(of_group, "g", "--group");
  EXPECT_EQ(of_group.entries.size(), 4u);
  EXPECT_TRUE(of_group.verdicts.empty());
  EXPECT_THROW(keep_group(of_group, "verdicts", "--group"), UserError) << "there are none";
}

TEST(Verdicts, OfRatesAreTurnedRound) {
  const Reproduced all = reproduce(numbers(kEntries + R"(
[[entry]]
id = "other rate"
scenario = { operation = "store" }
metric = "bandwidth"
unit = "GB/s"
value = 34
)" + kPair + "rows = [\"other rate\", \"rate\"]\n"));
  EXPECT_DOUBLE_EQ(all.verdicts.at(0).published_ratio, 2) << "twice the rate is half the time";
}

TEST(Verdicts, RefuseWhatCannotBeHeldAgainstEachOther) {
  expect_verdict_refused(kEntries + kPair + "rows = [\"store\", \"lod\"]\n", {"file.toml:", "rows", "lod"});
  expect_verdict_refused(kEntries + kPair + "rows = [\"store\", \"rate\"]\n",
                         {"file.toml:", "rows", "same metric and unit"});
  expect_verdict_refused(kEntries + kPair + "rows = [\"store\", \"store\"]\n",
                         {"file.toml:", "rows", "store", "twice"});
  expect_verdict_refused(kEntries + kPair + "rows = [\"store\"]\n",
                         {"file.toml:", "rows", "store", "speedup"});
  expect_verdict_refused(kEntries + kPair + "rows = [\"store\", \"load\", \"rate\"]\n",
                         {"file.toml:", "rows", "3"});
  expect_verdict_refused(kEntries + kPair + "rows = [\"store\", \"load\"]\nnames = [\"a\"]\n",
                         {"file.toml:", "names", "two"});
  expect_verdict_refused(kEntries + kPair + "rows = [\"store\", \"load\"]\nratio = 2\n",
                         {"file.toml:", "ratio"});
  expect_verdict_refused(kEntries + kPair + "rows = \"ratio\"\n" + kPair + "rows = \"ratio\"\n",
                         {"file.toml:", "pair", "ids must differ"});
}

TEST(Verdicts, RefuseScenariosOfTheirOwnThatAreIncomplete) {
  const std::string one = kOwn + "[[verdict]]\nid = \"v\"\n";
  expect_verdict_refused(one, {"file.toml:", "times", "ratio"});
  expect_verdict_refused(one + "ratio = 2\ntimes = [1, 2]\nunit = \"us\"\n",
                         {"file.toml:", "times", "ratio"});
  expect_verdict_refused(one + "ratio = -2\n", {"file.toml:", "ratio = -2", "above 0"});
  expect_verdict_refused(one + "times = [1]\nunit = \"us\"\n",
                         {"file.toml:", "times", "two numbers above 0"});
  expect_verdict_refused(one + "times = [1, 0]\nunit = \"us\"\n",
                         {"file.toml:", "times", "two numbers above 0"});
  expect_verdict_refused(one + "times = [1, 2]\n", {"file.toml:", "unit"});
  expect_verdict_refused(one + "times = [1, 2]\nunit = \"GB/s\"\n", {"file.toml:", "unit", "GB/s"});
  expect_verdict_refused(one + "ratio = 2\nways = [{ operation = \"store\" }]\n",
                         {"file.toml:", "ways", "two tables"});
  expect_verdict_refused(one + "ratio = 2\nclok = \"host\"\n", {"file.toml:", "clok", "clock"});
  expect_verdict_refused("verdict = 3\n", {"file.toml:", "[[verdict]]"});
}

TEST(Verdicts, ThatAreShippedAreManyAndNameTheirSource) {
  const PublishedNumbers shipped = published_numbers({});
  EXPECT_GE(shipped.verdicts.size(), 150u);
  EXPECT_TRUE(wanted_numbers({}, std::nullopt, "--group").verdicts.empty()) << "only on demand";
  EXPECT_EQ(wanted_numbers({}, "verdicts", "--group").verdicts.size(), shipped.verdicts.size());
  for (const VerdictQuestion& question : shipped.verdicts) {
    EXPECT_FALSE(question.names.at(0) == question.names.at(1)) << question.where;
    EXPECT_TRUE(question.own.empty() || !question.source.empty()) << question.where;
  }
}

}  // namespace
}  // namespace tritax
