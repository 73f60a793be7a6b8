// Predictions compared with published numbers and with measurements.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "model/core/error.hpp"
#include "model/workload/parse_value.hpp"
#include "python/bindings/calls.hpp"
#include "python/bindings/fields.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/runs.hpp"
#include "python/bindings/values.hpp"
#include "sim/study/reproduce.hpp"
#include "sim/study/validate.hpp"
#include "sim/study/verdicts.hpp"

namespace tritax::python {

namespace py = pybind11;

namespace {

ParallelOptions options_of(Call& call, int threads) {
  ParallelOptions options;
  options.threads = threads_of(threads);
  options.progress = [&call](std::size_t done, std::size_t all) { call.report(done, all); };
  options.cancelled = [&call] { return call.stop().load(); };
  return options;
}

py::dict dict_of(const ReproducedRow& row, const Scenario& scenario) {
  py::dict all;
  all["id"] = row.id;
  all["group"] = row.group;
  all["metric"] = row.metric;
  all["unit"] = row.unit;
  all["published"] = row.published;
  all["predicted"] = row.predicted;
  all["error"] = row.error;
  all["calibration"] = row.calibration;
  all["chosen"] = row.chosen;
  all["bound"] = row.bound;
  all["within_published_range"] = row.within_published_range;
  all["machine"] = scenario.machine;
  all["workload"] = std::string(scenario.problem.workload->name);
  all["pattern"] = scenario.pattern;
  all["source"] = row.source;
  all["notes"] = row.notes;
  all["failure"] = row.failure;
  return all;
}

struct Reproduction {
  py::list rows;
  py::list summary;  // by group
  py::list verdicts;
  py::list scores;  // by family, then for all
};

Reproduction reproduce_python(const py::object& files, const py::object& group, int threads,
                              const py::object& progress) {
  const PublishedNumbers numbers =
      wanted_numbers(files.is_none() ? std::vector<std::string>{} : paths_of(files),
                     group.is_none() ? std::nullopt : std::optional<std::string>(py::str(group)), "group");
  Reproduced all;
  run_call(progress, [&](Call& call) { all = reproduce(numbers, options_of(call, threads)); });
  const std::vector<ReproducedRow>& rows = all.rows;
  Reproduction answer;
  // The first variant stands for all variants of an entry.
  for (std::size_t i = 0; i < rows.size(); ++i)
    answer.rows.append(dict_of(rows[i], numbers.entries[i].scenarios.front()));
  for (const JudgedQuestion& verdict : all.verdicts)
    answer.verdicts.append(row_of(verdict_fields(), verdict));
  for (const Score& score : scores_by_family(all.verdicts))
    answer.scores.append(row_of(score_fields(), score));
  if (!all.verdicts.empty()) answer.scores.append(row_of(score_fields(), score_of("all", all.verdicts)));
  for (const GroupSummary& one : summarise(rows)) {
    py::dict row;
    row["group"] = one.group;
    row["predictions"] = one.predictions;
    row["calibration"] = one.calibration;
    row["failed"] = one.failed;
    row["median_error"] = one.median_error;
    row["worst_error"] = one.worst_error;
    answer.summary.append(std::move(row));
  }
  return answer;
}

std::vector<MeasuredFile> measured_of(const py::object& files) {
  if (files.is_none()) return shipped_measurements();
  std::vector<MeasuredFile> all;
  for (const std::string& path : paths_of(files)) all.push_back(read_measured(path));
  return all;
}

std::vector<Scenario> scenarios_of(const py::object& files) {
  if (files.is_none()) return shipped_measured_scenarios();
  std::vector<Scenario> all;
  for (const std::string& path : paths_of(files)) {
    std::vector<Scenario> more = read_scenarios(path);
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

py::dict dict_of(const ValidatedRow& row, MeasuredClock clock, const std::vector<MeasuredFile>& files) {
  py::dict all;
  all["id"] = row.id;
  all["file"] = files[row.file].origin;
  all["machine"] = row.machine;
  all["workload"] = std::string(row.problem.workload->name);
  all["pattern"] = row.pattern;
  all["measured_ns"] = row.measured_ns(clock);
  all["predicted_ns"] = row.predicted_on(clock);
  all["error"] = row.error(clock);
  all["in_band"] = row.in_band(clock);
  for (const Values* values : {&row.problem.values, &row.knobs}) {
    for (const auto& [key, value] : to_dict(*values)) all[key] = value;
  }
  return all;
}

py::dict dict_of(const Choice& choice) {
  py::dict all;
  all["workload"] = std::string(choice.problem.workload->name);
  all["fields"] = to_dict(choice.problem.values);
  all["picked"] = choice.picked->pattern;
  all["best"] = choice.best->pattern;
  all["regret"] = choice.regret;
  all["predicted_order"] = choice.predicted_order;
  all["measured_order"] = choice.measured_order;
  return all;
}

struct Validation {
  py::list rows;
  py::list choices;  // picks of the model, one per shape
  py::dict summary;
};

Validation validate_python(const py::object& measured, const py::object& scenarios, const py::object& machine,
                           const py::object& set, const py::object& scale, const std::string& clock_name,
                           int threads, const py::object& progress) {
  const auto clock = static_cast<MeasuredClock>(parse_name(clock_name, "clock", kMeasuredClockNames));
  const std::vector<ParameterChange> changes = changes_of(set, scale);
  const std::vector<std::string> machines = paths_of(machine);
  const std::string on = machines.empty() ? "" : machines.front();
  const std::vector<MeasuredFile> files = measured_of(measured);
  std::vector<MeasuredScenario> matched =
      match_scenarios(files, scenarios_of(scenarios), !scenarios.is_none(), on);
  if (matched.empty())
    throw UserError("validate: no measured row has the id of a scenario in the files given");
  for (MeasuredScenario& row : matched) row.scenario.changes = changes;
  std::vector<ValidatedRow> rows;
  run_call(progress, [&](Call& call) { rows = validate(matched, options_of(call, threads)); });
  Validation answer;
  for (const ValidatedRow& row : rows) answer.rows.append(dict_of(row, clock, files));
  for (const Choice& choice : choices_of(rows, clock)) answer.choices.append(dict_of(choice));
  answer.summary = row_of(validation_fields(), summarise(rows, clock));
  return answer;
}

}  // namespace

void add_comparisons(py::module_& module) {
  py::class_<Reproduction>(module, "Reproduction", "Published numbers beside what is predicted")
      .def_readonly("rows", &Reproduction::rows)
      .def_readonly("summary", &Reproduction::summary, "A row a group; errors are relative and absolute")
      .def_readonly("verdicts", &Reproduction::verdicts,
                    "Which of two ways is faster: predicted and published")
      .def_readonly("scores", &Reproduction::scores, "How many verdicts are right: a row a family, then all")
      .def(
          "verdict_frame", [](const Reproduction& one) { return frame_of(one.verdicts); },
          "The verdicts as a pandas.DataFrame")
      .def(
          "frame", [](const Reproduction& one) { return frame_of(one.rows); }, "As a pandas.DataFrame");
  py::class_<Validation>(module, "Validation", "Measured times beside what is predicted")
      .def_readonly("rows", &Validation::rows)
      .def_readonly("choices", &Validation::choices, "The model's pick among the measured patterns")
      .def_readonly("summary", &Validation::summary)
      .def(
          "frame", [](const Validation& one) { return frame_of(one.rows); }, "As a pandas.DataFrame");
  module.def("reproduce", &reproduce_python, py::arg("files") = py::none(), py::kw_only(),
             py::arg("group") = py::none(), py::arg("threads") = 0, py::arg("progress") = py::none(),
             "Every published number that is shipped, or those of files, recomputed. progress(done, all)");
  module.def("validate", &validate_python, py::arg("measured") = py::none(), py::kw_only(),
             py::arg("scenarios") = py::none(), py::arg("machine") = py::none(), py::arg("set") = py::none(),
             py::arg("scale") = py::none(), py::arg("clock") = "wall", py::arg("threads") = 0,
             py::arg("progress") = py::none(),
             "The measurements that are shipped, or those of files, predicted. progress(done, all)");
}

}  // namespace tritax::python
