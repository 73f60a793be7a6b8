#include "model/imports/traced_problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/scenario/write_scenario.hpp"
#include "model/workloads/registry.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kWidestRow = 8192;

// The largest power of two that divides the elements, up to the widest row: every share has whole rows then.
std::int64_t row_of(std::int64_t elements) {
  std::int64_t row = 1;
  while (row < kWidestRow && elements % (2 * row) == 0) row *= 2;
  return row;
}

class ProblemFinder {
 public:
  ProblemFinder(const Trace& trace, std::string machine, int gpus)
      : trace_(trace), machine_(std::move(machine)), gpus_(gpus) {
    found_.left_out = trace.left_out;
  }

  TracedProblems find() {
    const std::vector<TracedCall>& calls = trace_.calls;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (i + 1 < calls.size() && add_pair(calls[i], calls[i + 1])) {
        ++i;
      } else {
        add_alone(calls[i]);
      }
    }
    return std::move(found_);
  }

 private:
  int gpus_of(const TracedCall& call) const {
    if (call.gpus > 0) return call.gpus;
    if (gpus_ > 0) return gpus_;
    throw UserError(fmt::format("{}: {}: the trace does not say how many GPUs its group has; give --gpus",
                                trace_.file, call.place));
  }

  bool add_pair(const TracedCall& first, const TracedCall& second) {
    const bool behind = first.collective == TracedCollective::none;
    const TracedCall& product = behind ? first : second;
    const TracedCall& collective = behind ? second : first;
    if (product.collective != TracedCollective::none || collective.collective == TracedCollective::none)
      return false;
    const Workload* workload =
        find_workload(collective.collective, behind ? BesideProduct::behind : BesideProduct::before);
    if (workload == nullptr || product.dtype != collective.dtype) return false;
    const TracedProduct& size = product.product;
    const std::int64_t sent = behind ? collective.given : received(collective);
    if (sent != (behind ? size.rows * size.columns : size.rows * size.depth)) return false;
    const std::int64_t gpus = gpus_of(collective);
    Problem problem = problem_of(*workload);
    give(problem, "m", size.rows * (workload->traced->rows_of_all ? gpus : 1));
    give(problem, "n", size.columns * (workload->traced->columns_of_all ? gpus : 1));
    give(problem, "k", size.depth * (workload->traced->depth_of_all ? gpus : 1));
    add(std::move(problem), product.dtype, gpus, first.place);
    return true;
  }

  std::int64_t received(const TracedCall& call) const {
    if (call.received > 0 || call.collective != TracedCollective::all_gather) return call.received;
    return call.given * gpus_of(call);
  }

  void add_alone(const TracedCall& call) {
    const Workload* workload = find_workload(call.collective, BesideProduct::alone);
    if (workload == nullptr) {
      ++found_.left_out["collective without a workload"];
      return;
    }
    Problem problem = problem_of(*workload);
    if (call.collective == TracedCollective::none) {
      give(problem, "m", call.product.rows);
      give(problem, "n", call.product.columns);
      give(problem, "k", call.product.depth);
      add(std::move(problem), call.dtype, 1, call.place);
      return;
    }
    const std::int64_t gpus = gpus_of(call);
    const bool in_shares = call.collective == TracedCollective::reduce_scatter ||
                           call.collective == TracedCollective::all_to_all;
    const std::int64_t columns = row_of(in_shares && call.given % gpus == 0 ? call.given / gpus : call.given);
    give(problem, "rows", call.given / columns);
    give(problem, "cols", columns);
    add(std::move(problem), call.dtype, gpus, call.place);
  }

  static void give(Problem& problem, std::string_view field, std::int64_t value) {
    problem.values.give(field, value);
  }

  void add(Problem problem, DType dtype, std::int64_t gpus, const std::string& place) {
    give(problem, "dtype", static_cast<std::int64_t>(dtype));
    if (problem.values.has("gpus")) give(problem, "gpus", gpus);
    try {
      require_in_range(problem);
      complete_problem(problem, std::string(problem.workload->name));
    } catch (const UserError& error) {  // a sum of one number is no reason to lose the rest
      ++found_.left_out[error.what()];
      return;
    }
    const auto same = std::find_if(found_.problems.begin(), found_.problems.end(),
                                   [&](const TracedProblem& one) { return one.scenario.problem == problem; });
    if (same != found_.problems.end()) {
      ++same->count;
      return;
    }
    TracedProblem one;
    one.scenario = scenario_of(problem);
    one.scenario.machine = machine_;
    one.scenario.id = fmt::format("{}/{}", problem.workload->name, ++numbers_[problem.workload->name]);
    one.count = 1;
    one.first = place;
    found_.problems.push_back(std::move(one));
  }

  // As the reader of scenario files would refuse them.
  static void require_in_range(const Problem& problem) {
    const Values& values = problem.values;
    for (const Spec& spec : values.specs()) {
      if (spec.columns() != 1 || spec.kind != ValueKind::integer || !values.given(spec.column(0))) continue;
      const std::int64_t value = values[spec.column(0)];
      if (value >= spec.low && value <= spec.high) continue;
      throw UserError(fmt::format("{}: {} {} is out of range, {} to {} are allowed", problem.workload->name,
                                  spec.name, value, spec.low, spec.high));
    }
  }

  const Trace& trace_;
  std::string machine_;
  int gpus_;
  TracedProblems found_;
  std::map<std::string_view, int> numbers_;  // of ids, by workload
};

}  // namespace

TracedProblems problems_of(const Trace& trace, const std::string& machine, int gpus) {
  return ProblemFinder(trace, machine, gpus).find();
}

std::string write_problems(const TracedProblems& found, const std::string& head) {
  std::string text = "# " + head + "\n";
  for (const TracedProblem& one : found.problems) {
    Scenario scenario = one.scenario;
    scenario.title = fmt::format("{} x in the trace, first: {}", one.count, one.first);
    text += '\n';
    text += write_scenario(scenario);
  }
  return text;
}

}  // namespace tritax
