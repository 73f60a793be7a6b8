// Small schedules of workloads whose workgroups serve all peers, for tests of groups.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/machine/machine.hpp"
#include "model/workload/workload.hpp"
#include "model/workloads/registry.hpp"

namespace tritax::peers {

inline constexpr std::int64_t kTogether = 0, kInTurn = 1;

struct Question {
  std::string_view workload, pattern;
  std::int64_t rows = 24, cols = 40;
  int gpus = 4;
};

inline Schedule schedule_of(const Question& question, const Machine& machine, std::int64_t peers,
                            std::int64_t transport, DType dtype = DType::fp16) {
  Problem problem = problem_of(find_workload(question.workload, "test"));
  problem.values.give("rows", question.rows);
  problem.values.give("cols", question.cols);
  problem.values.give("gpus", question.gpus);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  complete_problem(problem, "test");
  Values knobs = resolved_knobs(problem, machine, {});
  knobs.give("peers", peers);
  knobs.give("transport", transport);
  if (knobs.has("comm_tile_m")) {
    knobs.give("comm_tile_m", 16);
    knobs.give("comm_tile_n", 16);
  }
  return build_schedule(find_pattern(*problem.workload, question.pattern, "test"), problem, machine, knobs);
}

inline constexpr Question kQuestions[] = {{"all-reduce", "one-shot"},
                                          {"all-reduce", "two-shot"},
                                          {"reduce-scatter", "direct"},
                                          {"all-reduce-norm", "one-shot"}};

inline Machine small_h200() {
  Machine machine = find_machine("h200-8");
  machine.gpu.cus_per_xcd = 8;
  return machine;
}

}  // namespace tritax::peers
