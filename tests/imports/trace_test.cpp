// Traces become problems: products, collectives and their pairs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "model/core/error.hpp"
#include "model/imports/traced_problems.hpp"

namespace tritax {
namespace {

std::string trace_file(const std::string& name) { return TRITAX_SOURCE_DIR "/tests/imports/data/" + name; }

// "gemm-all-reduce 16x8192x28672 bf16 8 GPUs": how often.
std::map<std::string, std::int64_t> problems_in(const std::string& name, int gpus = 0) {
  std::map<std::string, std::int64_t> all;
  for (const TracedProblem& one : problems_of(read_trace(trace_file(name)), "h200-8", gpus).problems) {
    const Problem& problem = one.scenario.problem;
    all[std::string(problem.workload->name) + " " + key_of(problem.values)] += one.count;
  }
  return all;
}

std::string refusal_of_trace(const std::string& text) {
  try {
    parse_trace(text, "t.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// Of one layer on eight GPUs, 16 tokens, twice; then sequence parallelism.
TEST(ImportTrace, FindsProductsWithTheCollectivesBesideThem) {
  const TracedProblems found = problems_of(read_trace(trace_file("kineto.json")), "h200-8", 0);
  struct Expected {
    std::string id;
    std::int64_t m, n, k, gpus, count;
  };
  const std::vector<Expected> expected{{"gemm/1", 16, 1280, 8192, 1, 2},
                                       {"gemm-all-reduce/1", 16, 8192, 8 * 1024, 8, 2},
                                       {"gemm-all-reduce/2", 16, 8192, 8 * 3584, 8, 2},
                                       {"all-gather-gemm/1", 128, 3584, 8192, 8, 1},
                                       {"gemm-reduce-scatter/1", 128, 8192, 8 * 3584, 8, 1}};
  ASSERT_EQ(found.problems.size(), expected.size() + 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const TracedProblem& one = found.problems[i];
    const Problem& problem = one.scenario.problem;
    EXPECT_EQ(one.scenario.id, expected[i].id);
    EXPECT_EQ(problem["m"], expected[i].m) << one.scenario.id;
    EXPECT_EQ(problem["n"], expected[i].n) << one.scenario.id;
    EXPECT_EQ(problem["k"], expected[i].k) << one.scenario.id;
    EXPECT_EQ(problem["dtype"], static_cast<std::int64_t>(DType::bf16));
    EXPECT_EQ(problem.gpus(), expected[i].gpus) << one.scenario.id;
    EXPECT_EQ(one.count, expected[i].count) << one.scenario.id;
  }
  const Problem& alone = found.problems.back().scenario.problem;
  EXPECT_EQ(found.problems.back().scenario.id, "broadcast/1");
  EXPECT_EQ(alone["rows"] * alone["cols"], 4096);
}

TEST(ImportTrace, CountsWhatItLeavesOut) {
  const Trace trace = read_trace(trace_file("kineto.json"));
  const std::map<std::string, std::int64_t> expected{
      {"aten::bmm, batched", 2}, {"aten::mm of double", 1}, {"collective allreduce of Long", 1}};
  EXPECT_EQ(trace.left_out, expected);
}

// The host is ahead of the device by two products there.
TEST(ImportTrace, GoesByTimesOfTheDeviceWhereOnlyKernelsTellCollectives) {
  const auto found = problems_in("kineto-kernels.json");
  ASSERT_EQ(found.size(), 2u);
  for (const auto& [problem, count] : found) EXPECT_TRUE(problem.starts_with("gemm-all-reduce ")) << problem;
}

// Columns of a GPU, gathered on all: 4 x 1152.
TEST(ImportTrace, ReadsExecutionTraces) {
  const TracedProblems found = problems_of(read_trace(trace_file("execution-trace.json")), "h200-4", 0);
  ASSERT_EQ(found.problems.size(), 1u);
  const Problem& problem = found.problems[0].scenario.problem;
  EXPECT_EQ(problem.workload->name, "gemm-all-scatter");
  EXPECT_EQ(problem["n"], 4608);
  EXPECT_EQ(problem.gpus(), 4);
}

TEST(ImportTrace, ReadsChakraWhichKnowsNoGroups) {
  EXPECT_THROW(problems_in("chakra.json"), UserError);
  const TracedProblems found = problems_of(read_trace(trace_file("chakra.json")), "h200-4", 4);
  ASSERT_EQ(found.problems.size(), 1u);
  EXPECT_EQ(found.problems[0].scenario.problem.workload->name, "gemm-all-reduce");
  EXPECT_EQ(found.problems[0].scenario.problem["k"], 4096);
}

TEST(ImportTrace, WritesScenariosThatReadBackTheSame) {
  const TracedProblems found = problems_of(read_trace(trace_file("kineto.json")), "h200-8", 0);
  const std::vector<Scenario> again = parse_scenarios(write_problems(found, "of a test"), "out.toml");
  ASSERT_EQ(again.size(), found.problems.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].problem, found.problems[i].scenario.problem) << again[i].id;
    EXPECT_EQ(again[i].id, found.problems[i].scenario.id);
  }
}

// An expert without tokens.
TEST(ImportTrace, CountsWhatHasNoElementsAsLeftOut) {
  const auto mm = [](int rows) {
    return fmt::format(
        R"({{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "args": {{"Input Dims": [[{}, 8], )"
        R"([8, 4]], "Input type": ["c10::Half", "c10::Half"]}}}})",
        rows);
  };
  const Trace trace = parse_trace("{\"traceEvents\": [" + mm(0) + "," + mm(16) + "]}", "t.json");
  ASSERT_EQ(trace.calls.size(), 1U);
  EXPECT_EQ(trace.left_out.at("aten::mm of no elements"), 1);
}

TEST(ImportTrace, RefusesWithPlaceValueAndWhatIsAllowed) {
  const auto mm = [](const std::string& args) {
    return R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 12.5, "args": {)" +
           args + "}}]}";
  };
  EXPECT_EQ(
      refusal_of_trace(mm(R"("Input Dims": [[16, 8], [9, 4]], "Input type": ["c10::Half", "c10::Half"])")),
      "t.json: aten::mm at ts 12.5: Input Dims: [[16,8],[9,4]] is not allowed; the columns of the left "
      "matrix must "
      "be as many as the rows of the right one");
  const std::string sizes = " is not allowed; a matrix has two sizes of 1 to 2147483648";
  EXPECT_EQ(refusal_of_trace(mm(R"("Input Dims": [[16, -1], [8, 4]], "Input type": [])")),
            "t.json: aten::mm at ts 12.5: Input Dims: [16,-1]" + sizes);
  EXPECT_EQ(refusal_of_trace(mm(R"("Input Dims": [[4611686018427387904, 8], [8, 4]], "Input type": [])")),
            "t.json: aten::mm at ts 12.5: Input Dims: [4611686018427387904,8]" + sizes);
  EXPECT_EQ(refusal_of_trace(mm(R"("Input Dims": [[1e300, 8], [8, 4]], "Input type": [])")),
            "t.json: aten::mm at ts 12.5: Input Dims: [1e+300,8]" + sizes);
  EXPECT_EQ(refusal_of_trace(mm("")),
            "t.json: 1 products have no \"Input Dims\"; profile with record_shapes=True");
  EXPECT_TRUE(refusal_of_trace("{\"traceEvents\": [").starts_with("t.json: not valid JSON: "))
      << refusal_of_trace("{");
  EXPECT_TRUE(refusal_of_trace("{}").starts_with("t.json: not a trace: give JSON with \"traceEvents\""));
  EXPECT_TRUE(refusal_of_trace("{\"traceEvents\": []}").starts_with("t.json: no product"));
  EXPECT_NE(refusal_of_trace(std::string(100, '[')), "");
}

}  // namespace
}  // namespace tritax
