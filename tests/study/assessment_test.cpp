#include "sim/study/assessment.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/workload/launching.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

struct Question {
  Machine machine = find_machine("mi300x-8");
  Problem problem = problem_of(find_workload("gemm-all-scatter", "test"));
  Question() {
    for (const char* size : {"m", "n", "k"}) problem.values.give(size, 1024);
    complete_problem(problem, "test");
  }
  const Pattern& pattern(std::string_view name) const {
    return find_pattern(*problem.workload, name, "test");
  }
  // Of fused-sequential, launched so.
  Answered beside_library(double time_ns, LaunchMode mode) const {
    const Values knobs = in_mode(Values(problem.workload->knobs), mode, machine);
    return verdict_beside_library(problem, machine, pattern("fused-sequential"), knobs, time_ns, 1);
  }
  double library_ns(CallForm form) const {
    Values knobs(problem.workload->knobs);
    knobs.give(kFormKnob, static_cast<std::int64_t>(form));
    SimulationOptions options;
    options.seed = 1;
    return simulate(
               build_schedule(pattern("library"), problem, machine, resolved_knobs(problem, machine, knobs)),
               machine, options)
        .makespan_ns;
  }
};

TEST(VerdictBesideALibrary, TakesTheLibraryInTheSameLaunchMode) {
  const Question question;
  const double stream_ns = question.library_ns(CallForm::stream),
               graph_ns = question.library_ns(CallForm::graph);
  ASSERT_NE(fmt::format("{:.1f} us", stream_ns / 1e3), fmt::format("{:.1f} us", graph_ns / 1e3));
  const auto names = [&](LaunchMode mode, double time_ns) {
    const Answered answered = question.beside_library(1e9, mode);
    return answered.sentence.find(fmt::format("library takes {:.1f} us", time_ns / 1e3)) != std::string::npos;
  };
  EXPECT_TRUE(names(LaunchMode::stream, stream_ns))
      << question.beside_library(1e9, LaunchMode::stream).sentence;
  EXPECT_TRUE(names(LaunchMode::graph, graph_ns)) << question.beside_library(1e9, LaunchMode::graph).sentence;
}

// One process for all GPUs launches the library, too.
TEST(VerdictBesideALibrary, TakesTheLibraryWithAsManyProcesses) {
  Question question;
  question.machine = find_machine("h200-8");
  question.problem.values.give("gpus", 8);
  SimulationOptions options;
  options.seed = 1;
  Values knobs(question.problem.workload->knobs);
  knobs.give(kProcessesKnob, 1);
  const auto library_ns = [&](std::int64_t processes) {
    Values of_library(question.problem.workload->knobs);
    of_library.give(kProcessesKnob, processes);
    return simulate(build_schedule(question.pattern("library"), question.problem, question.machine,
                                   resolved_knobs(question.problem, question.machine, of_library)),
                    question.machine, options)
        .makespan_ns;
  };
  ASSERT_GT(library_ns(1), library_ns(0) * 1.001);
  const Answered answered = verdict_beside_library(question.problem, question.machine,
                                                   question.pattern("fused-sequential"), knobs, 1e9, 1);
  EXPECT_NE(answered.sentence.find(fmt::format("library takes {:.1f} us", library_ns(1) / 1e3)),
            std::string::npos)
      << answered.sentence;
}

TEST(VerdictBesideALibrary, OfKnobsThatNobodySearchedIsUnknownWhereTheLibraryIsFaster) {
  const Question question;
  const Answered slow = question.beside_library(1e9, LaunchMode::stream);
  EXPECT_EQ(slow.verdict, Verdict::unknown);
  EXPECT_EQ(slow.sentence.find("best of"), std::string::npos) << slow.sentence;
  const Verdict fast = question.beside_library(1e3, LaunchMode::stream).verdict;
  EXPECT_TRUE(fast == Verdict::pays || fast == Verdict::may_pay) << name_of(fast);
}

TEST(VerdictBesideALibrary, IsNoneOfALibrary) {
  const Question question;
  const Answered answered =
      verdict_beside_library(question.problem, question.machine, question.pattern("library"),
                             Values(question.problem.workload->knobs), 1e6, 1);
  EXPECT_EQ(answered.verdict, Verdict::alone);
  EXPECT_TRUE(answered.sentence.empty());
}

}  // namespace
}  // namespace tritax
