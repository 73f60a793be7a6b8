// `tritax evaluate`: every line has one answer, and valid lines have the answer of `tritax simulate`.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/evaluate_line.hpp"
#include "model/scenario/scenario.hpp"
#include "model/schedule/json.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using cli::LineEvaluator;
using cli::LineRead;
using nlohmann::json;

LineEvaluator evaluator_of_lines() {
  cli::LineDefaults defaults;
  defaults.workload = workloads().front();
  defaults.machine = "h200-4";
  defaults.max_operations = 20'000;
  return LineEvaluator(defaults);
}

const std::string kGoodLine =
    R"({"id": "a", "problem": {"m": 512, "n": 512, "k": 256, "gpus": 2, "dtype": "bf16"}, )"
    R"("pattern": "producer-consumer", "knobs": {"tile": [128, 128, 64], "host_barriers": true}, "seed": 3})";

json answer_of(const std::string& line) { return json::parse(evaluator_of_lines().answer(line)); }

std::string refusal_of(const std::string& line) { return answer_of(line).value("invalid", "it is valid"); }

TEST(EvaluateLine, HasTheTimeOfSimulateAndABoundBelowIt) {
  const json answer = answer_of(kGoodLine);
  ASSERT_FALSE(answer.contains("invalid")) << answer;
  EXPECT_EQ(answer.at("id"), "a");
  Scenario scenario = parse_scenarios(
      "[[scenario]]\nid = 'a'\nmachine = 'h200-4'\nworkload = 'gemm-all-scatter'\npattern = "
      "'producer-consumer'\ngpus = 2\nm = 512\nn = 512\nk = 256\ndtype = 'bf16'\n[scenario.knobs]\ntile = "
      "'128x128x64'\nhost_barriers = true\n",
      "test")[0];
  const Machine machine = find_machine("h200-4");
  const Schedule schedule = build_scenario(scenario, machine);
  SimulationOptions options;
  options.seed = 3;
  const double time_us = simulate(schedule, machine, options).makespan_ns / 1000;
  EXPECT_DOUBLE_EQ(answer.at("time_us"), time_us);
  EXPECT_GT(answer.at("bound_us"), 0);
  EXPECT_LE(answer.at("bound_us"), time_us);
  double sum = 0;
  for (const json& part : answer.at("critical_path")) sum += part.get<double>();
  EXPECT_NEAR(sum, time_us, 1e-6 * time_us);
  // The same as a schedule.
  const json written{{"schedule", json::parse(schedule_to_json(schedule))}, {"seed", 3}};
  EXPECT_DOUBLE_EQ(answer_of(written.dump()).at("time_us"), time_us);
}

TEST(EvaluateLine, RefusalsSayWhatAndWhat) {
  const auto says = [](const std::string& line, const std::vector<std::string>& words) {
    const std::string refusal = refusal_of(line);
    for (const std::string& word : words) EXPECT_NE(refusal.find(word), std::string::npos) << refusal;
  };
  says("", {"empty"});
  says("{\"id\": 1", {"ends too early"});
  says("[1]", {"object"});
  says("{\"problem\": {\"m\": NaN}}", {"line:1:"});
  says(R"({"problem": {"m": 64, "n": 64}})", {"problem.k", "missing"});
  says(R"({"problem": {"m": 1e999, "n": 64, "k": 64}})", {"line"});
  says(R"({"problem": {"m": 2.5, "n": 64, "k": 64}})", {"problem.m", "2.5", "whole number"});
  says(R"({"problem": {"m": 64, "n": 64, "k": 64, "gpu": 2}})", {"gpu", "did you mean 'gpus'"});
  says(R"({"problem": {"m": 64, "n": 64, "k": 64, "gpus": 9}})", {"9", "h200-4"});
  says(R"({"problem": {"m": 64, "n": 64, "k": 64}, "knobs": {"tile": "7"}})", {"knobs.tile", "7"});
  says(R"({"problem": {"m": 64, "n": 64, "k": 64}, "pattern": "fused"})", {"pattern", "fused"});
  says(R"({"machine": "/dev/stdin", "problem": {"m": 64, "n": 64, "k": 64}})", {"shipped", "--machine"});
  says(R"({"schedule": {}, "knobs": {}})", {"knobs", "a schedule runs unchanged"});
  says(R"({"problem": {"m": 65536, "n": 65536, "k": 64}, "pattern": "producer-consumer"})",
       {"operations", "--max-operations"});
  says(R"({"id": {}})", {"id", "number or a text"});
  says(std::string(100'000, '['), {"nested"});
}

TEST(EvaluateLine, ReadsLinesOfAnyBytesAndPassesOverLongOnes) {
  std::istringstream in(std::string("ab\n\n\0x\xff\n0123456789\nlast", 23));
  std::string line;
  EXPECT_EQ(cli::read_line(in, 4, line), LineRead::read);
  EXPECT_EQ(line, "ab");
  EXPECT_EQ(cli::read_line(in, 4, line), LineRead::read);
  EXPECT_EQ(line, "");
  EXPECT_EQ(cli::read_line(in, 4, line), LineRead::read);
  EXPECT_EQ(line, std::string("\0x\xff", 3));
  EXPECT_EQ(cli::read_line(in, 4, line), LineRead::too_long);
  EXPECT_EQ(cli::read_line(in, 4, line), LineRead::read);
  EXPECT_EQ(line, "last");
  EXPECT_EQ(cli::read_line(in, 4, line), LineRead::end);
}

void expect_one_answer(LineEvaluator& evaluator, const std::string& line) {
  const std::string answer = evaluator.answer(line);
  RC_ASSERT(answer.find('\n') == std::string::npos);
  const json tree = json::parse(answer);
  RC_ASSERT(tree.contains("time_us") != tree.contains("invalid"));
}

RC_GTEST_PROP(EvaluateLine, AnyBytesHaveOneAnswer, ()) {
  static LineEvaluator evaluator = evaluator_of_lines();
  expect_one_answer(evaluator, *rc::gen::arbitrary<std::string>());
}

RC_GTEST_PROP(EvaluateLine, AGoodLineWithBytesChangedHasOneAnswer, ()) {
  static LineEvaluator evaluator = evaluator_of_lines();
  const std::string bytes = "{}[]\",:0123456789-.eEx \\n\x80\x1b";
  std::string line = kGoodLine;
  for (int changes = *rc::gen::inRange(1, 4); changes > 0; --changes) {
    const auto at = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(line.size())));
    const auto with = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(bytes.size())));
    if (*rc::gen::inRange(0, 3) == 0) {
      line.erase(at, with);
    } else {
      line[at] = bytes[with];
    }
    if (line.empty()) break;
  }
  expect_one_answer(evaluator, line);
}

RC_GTEST_PROP(EvaluateLine, AnyNumbersHaveOneAnswer, ()) {
  static LineEvaluator evaluator = evaluator_of_lines();
  const auto number = [] {
    const std::int64_t sign = *rc::gen::element(-1, 1, 1, 1, 1);
    return sign * *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << *rc::gen::inRange(1, 62));
  };
  json line{{"problem", {{"m", number()}, {"n", number()}, {"k", number()}, {"gpus", number()}}},
            {"pattern", "fused-sequential"},
            {"knobs", {{"tile", {number(), number(), number()}}, {"waves", number()}}}};
  expect_one_answer(evaluator, line.dump());
}

TEST(Evaluate, StaysUpBetweenGoodLinesAndBad) {
  const test::ScratchDirectory scratch;
  const std::string file = scratch.write("lines", kGoodLine + "\n\xff\n" + kGoodLine);
  const test::Outcome outcome = test::run_tritax("evaluate --stdin --machine h200-4", "cat '" + file + "' |");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  std::istringstream answers(outcome.out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(answers, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(json::parse(lines[1]).contains("invalid"));
  EXPECT_TRUE(json::parse(lines[0]).contains("time_us"));
  EXPECT_EQ(lines[0], lines[2]);
  EXPECT_EQ(test::run_tritax("evaluate --machine h200-4").exit_code, 2);
}

}  // namespace
}  // namespace tritax
