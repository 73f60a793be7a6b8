#include "sim/study/validate_ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "model/core/error.hpp"
#include "model/core/quantile.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/schedule/op_traits.hpp"
#include "sim/simulate.hpp"
#include "sim/timeline.hpp"

namespace tritax {

namespace {

// One measured schedule.
struct Run {
  Scenario scenario;
  std::string where;  // its first row
  std::optional<double> flush_bytes;
  std::map<OpGroup, OpTimes> times;
};

using RunKey = std::tuple<std::string, int, std::optional<double>>;  // id, GPUs, bytes written before

RunKey key_of(const MeasuredOps& row) { return {row.id, row.gpus, row.flush_bytes}; }

// Most workloads have the row's number of GPUs as a field; the others run on one GPU.
void give_gpus(Scenario& scenario, const MeasuredOps& row) {
  const std::span<const Spec> fields = scenario.problem.values.specs();
  const auto spec =
      std::find_if(fields.begin(), fields.end(), [](const Spec& field) { return field.counts_gpus; });
  const std::int64_t low = spec == fields.end() ? 1 : spec->low;
  const std::int64_t high = spec == fields.end() ? 1 : spec->high;
  if (row.gpus < low || row.gpus > high) {
    throw UserError(fmt::format("{}: gpus = {}, but {} of scenario '{}' ({}) runs on {}", row.where, row.gpus,
                                scenario.problem.workload->name, scenario.id, scenario.where,
                                low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high)));
  }
  if (spec != fields.end()) scenario.problem.values.give(spec->name, row.gpus);
  complete_problem(scenario.problem, row.where);
}

Scenario scenario_of(const MeasuredOps& row, const std::map<std::string, const Scenario*>& by_id,
                     const std::string& machine) {
  const auto found = by_id.find(row.id);
  if (found == by_id.end()) {
    std::vector<std::string> known;
    for (const auto& [id, scenario] : by_id) known.push_back(id);
    const std::string nearest = nearest_name(row.id, known);
    throw UserError(
        fmt::format("{}: no scenario has the id '{}'{}; name the scenario files that were measured",
                    row.where, row.id, nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest)));
  }
  Scenario scenario = *found->second;
  if (scenario.pattern != row.pattern) {
    throw UserError(fmt::format("{}: pattern '{}' contradicts scenario '{}' ({})", row.where, row.pattern,
                                scenario.id, scenario.where));
  }
  give_gpus(scenario, row);
  if (!machine.empty()) scenario.machine = machine;
  return scenario;
}

void simulate_run(Run& run, const Machine& machine) {
  Schedule schedule = build_scenario(run.scenario, machine);
  run_by_interpreter(schedule);  // as `tritax measure` does
  TimelineRecorder recorder(schedule);
  SimulationOptions options = found_in_caches(run.flush_bytes);
  options.observer = &recorder;
  simulate(schedule, machine, options);
  for (const OpTimes& times : op_times(recorder.take(), schedule)) run.times[times.group] = times;
}

std::string describe(const OpGroup& group) {
  return fmt::format("{}{} {}{}in kernel '{}'", group.remote ? "remote " : "", name_of(group.kind),
                     group.size, group.size.empty() ? "" : " ", group.kernel);
}

// The median of values that each stand for `count` operations.
double weighted_median(std::vector<std::pair<double, std::int64_t>> values) {
  std::sort(values.begin(), values.end());
  std::int64_t all = 0;
  for (const auto& [value, count] : values) all += count;
  std::int64_t below = 0;
  for (const auto& [value, count] : values) {
    below += count;
    if (2 * below >= all) return value;
  }
  return 0;
}

std::optional<double> ratio(double predicted, double measured) {
  if (measured <= 0) return std::nullopt;
  return predicted / measured - 1;
}

}  // namespace

std::optional<double> OpResidual::error() const {
  return ratio(predicted.median_us, measured.times.median_us);
}

std::vector<OpResidual> validate_ops(const std::vector<MeasuredOpsFile>& files,
                                     const std::vector<Scenario>& scenarios, const std::string& machine,
                                     const ValidateOptions& options) {
  const std::map<std::string, const Scenario*> by_id = scenarios_by_id(scenarios);
  std::map<RunKey, std::size_t> index;
  std::vector<Run> runs;
  std::map<std::string, Machine> machines;
  for (const MeasuredOpsFile& file : files) {
    for (const MeasuredOps& row : file.rows) {
      const auto [place, fresh] = index.emplace(key_of(row), runs.size());
      if (!fresh) continue;
      runs.push_back({scenario_of(row, by_id, machine), row.where, row.flush_bytes, {}});
      const Scenario& scenario = runs.back().scenario;
      if (machines.count(scenario.machine) == 0) {
        machines.emplace(scenario.machine, find_machine_of(scenario));
      }
    }
  }
  const std::vector<TaskOutcome> outcomes = in_parallel(runs.size(), options, [&](std::size_t i) {
    simulate_run(runs[i], machines.at(runs[i].scenario.machine));
  });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (outcomes[i].failure.empty()) continue;
    throw UserError(fmt::format("{}: this row cannot be simulated: {}", runs[i].where, outcomes[i].failure));
  }
  std::vector<OpResidual> residuals;
  for (const MeasuredOpsFile& file : files) {
    for (const MeasuredOps& row : file.rows) {
      const std::size_t number = index.at(key_of(row));
      if (!outcomes[number].done) continue;
      const Run& run = runs[number];
      const auto found = run.times.find(row.times.group);
      if (found == run.times.end()) {
        throw UserError(
            fmt::format("{}: the schedule of this scenario on '{}' has no {}; give the machine that "
                        "it was measured with",
                        row.where, run.scenario.machine, describe(row.times.group)));
      }
      residuals.push_back({run.scenario, row, found->second, run.scenario.machine});
    }
  }
  return residuals;
}

std::vector<OpKindResidual> summarise_ops(const std::vector<OpResidual>& rows) {
  std::map<std::pair<OpKind, bool>, std::vector<const OpResidual*>> kinds;
  for (const OpResidual& row : rows) {
    kinds[{row.measured.times.group.kind, row.measured.times.group.remote}].push_back(&row);
  }
  std::vector<OpKindResidual> summary;
  for (const auto& [kind, groups] : kinds) {
    OpKindResidual& one = summary.emplace_back();
    one.kind = kind.first;
    one.remote = kind.second;
    one.groups = static_cast<std::int64_t>(groups.size());
    std::vector<std::pair<double, std::int64_t>> measured;
    std::vector<std::pair<double, std::int64_t>> predicted;
    std::vector<double> errors;
    std::vector<double> magnitudes;
    for (const OpResidual* row : groups) {
      const OpTimes& times = row->measured.times;
      one.count += times.count;
      one.measured_sum_us += times.sum_us;
      one.predicted_sum_us += row->predicted.sum_us;
      measured.emplace_back(times.median_us, times.count);
      predicted.emplace_back(row->predicted.median_us, row->predicted.count);
      if (const auto error = row->error()) {
        errors.push_back(*error);
        magnitudes.push_back(std::abs(*error));
      }
    }
    one.measured_median_us = weighted_median(measured);
    one.predicted_median_us = weighted_median(predicted);
    one.sum_error = ratio(one.predicted_sum_us, one.measured_sum_us);
    if (errors.empty()) continue;
    one.median_error = quantile(errors, 0.5);
    one.median_abs_error = quantile(magnitudes, 0.5);
  }
  return summary;
}

double stamping_cost(const std::vector<OpResidual>& rows) {
  std::map<RunKey, double> costs;
  for (const OpResidual& row : rows) {
    costs[key_of(row.measured)] = row.measured.stamped_device_us / row.measured.device_us - 1;
  }
  std::vector<double> values;
  for (const auto& [run, cost] : costs) values.push_back(cost);
  return quantile(std::move(values), 0.5);
}

}  // namespace tritax
