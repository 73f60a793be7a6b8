#include "python/bindings/schedules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/finding_names.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/json.hpp"
#include "model/schedule/operations.hpp"
#include "python/bindings/calls.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/values.hpp"
#include "python/bindings/workloads.hpp"
#include "sim/functional.hpp"

namespace tritax::python {

namespace py = pybind11;

std::string BoundSchedule::place() const { return fmt::format("schedule '{}'", schedule_->name); }

void BoundSchedule::require_sound_on(const Machine& machine) const {
  if (rebuild_) return;
  if (!sound_->load()) {
    require_sound(check_schedule(*schedule_), place());
    sound_->store(true);
  }
  require_sound(check_schedule_on(*schedule_, machine), place());
}

namespace {

// A knob without an effect is an error.
void refuse_unused(const Pattern& pattern, const Values& knobs) {
  for (const Spec& spec : knobs.specs()) {
    if (spec.of_every_run || pattern.uses(spec.name) || !knobs.given(spec.column(0))) continue;
    throw UserError(
        fmt::format("{}: {} is no knob of it; it has {}", pattern.name, spec.name,
                    pattern.knobs.empty() ? "none" : fmt::format("{}", fmt::join(pattern.knobs, ", "))));
  }
}

BoundSchedule schedule_of(const Problem& given, const Machine& machine, const py::object& pattern_name,
                          const py::kwargs& given_knobs) {
  const Problem problem = problem_on(given, machine);
  const Workload& workload = *problem.workload;
  const std::string name =
      pattern_name.is_none() ? std::string(workload.usual_pattern) : std::string(py::str(pattern_name));
  const Pattern& pattern = find_pattern(workload, name, fmt::format("{}: pattern", workload.name));
  Values pins(workload.knobs);
  give_all(pins, given_knobs, name);
  refuse_unused(pattern, pins);
  const py::gil_scoped_release without_lock;
  Rebuild rebuild;
  rebuild.pattern = &pattern;
  rebuild.knobs = resolved_knobs(problem, machine, pins);
  for (std::size_t i = 0; i < rebuild.knobs.columns(); ++i) rebuild.knobs.give_at(i, rebuild.knobs.at(i));
  rebuild.build = [&pattern, problem](const Machine& on, const Values& knobs) {
    return build_schedule(pattern, problem, on, knobs);
  };
  Schedule schedule = rebuild.build(machine, rebuild.knobs);
  return {std::move(schedule), std::move(rebuild)};
}

py::object knobs_of(const BoundSchedule& schedule) {
  if (schedule.rebuild() == nullptr) return py::none();
  const Rebuild& rebuild = *schedule.rebuild();
  py::dict knobs;
  for (std::size_t i = 0; i < rebuild.knobs.specs().size(); ++i) {
    const Spec& spec = rebuild.knobs.specs()[i];
    if (spec.of_every_run || rebuild.pattern->uses(spec.name)) {
      knobs[py::str(std::string(spec.name))] = to_python(rebuild.knobs, i);
    }
  }
  return knobs;
}

py::object pattern_of(const BoundSchedule& schedule) {
  if (schedule.rebuild() == nullptr) return py::none();
  return py::str(std::string(schedule.rebuild()->pattern->name));
}

py::list kernels_of(const BoundSchedule& schedule) {
  py::list rows;
  for (const Kernel& kernel : schedule->kernels) {
    std::int64_t operations = 0;
    for (std::size_t p = 0; p < program_count(kernel); ++p) operations += program_of(kernel, p).op_count;
    py::dict row;
    row["name"] = kernel.name;
    row["rank"] = kernel.rank;
    row["workgroups"] = kernel.workgroups.size();
    row["items"] = kernel.items.size();
    row["operations"] = operations;
    row["threads"] = kernel.resources.threads;
    row["registers_per_thread"] = kernel.resources.registers_per_thread;
    row["lds_bytes"] = kernel.resources.lds_bytes;
    row["placement"] = std::string(kPlacementNames[static_cast<std::size_t>(kernel.placement)]);
    rows.append(std::move(row));
  }
  return rows;
}

py::list buffers_of(const BoundSchedule& schedule) {
  py::list rows;
  for (const Buffer& buffer : schedule->buffers) {
    py::dict row;
    row["name"] = buffer.name;
    row["dtype"] = std::string(name_of(buffer.dtype));
    row["rows"] = buffer.rows;
    row["cols"] = buffer.cols;
    row["tile_rows"] = buffer.tile_rows;
    row["tile_cols"] = buffer.tile_cols;
    rows.append(std::move(row));
  }
  return rows;
}

void save(const BoundSchedule& schedule, const py::object& path_object, bool pretty) {
  const std::string path = paths_of(path_object).at(0);
  std::ofstream file(path, std::ios::binary);
  file << schedule_to_json(*schedule, pretty) << '\n';
  file.close();
  if (!file) throw UserError(fmt::format("'{}': it cannot be written; give a path that can", path));
}

std::vector<Finding> check(const BoundSchedule& schedule, const Machine* machine,
                           const py::object& progress) {
  std::vector<Finding> findings;
  run_call(progress, [&](Call&) {
    findings = check_schedule(*schedule);
    // With dangling references, the resources of a schedule are meaningless.
    if (findings.empty() && machine != nullptr) findings = check_schedule_on(*schedule, *machine);
  });
  return findings;
}

FunctionalResult execute(const BoundSchedule& schedule, const Machine& machine, std::uint64_t seed) {
  FunctionalResult result;
  run_call(py::none(),
           [&](Call& call) { result = execute_functionally(*schedule, machine, seed, &call.stop()); });
  return result;
}

void add_findings(py::module_& module) {
  py::class_<Finding>(module, "Finding", "What the checker has against a schedule")
      .def_property_readonly("kind",
                             [](const Finding& finding) { return std::string(name_of(finding.kind)); })
      .def_readonly("where", &Finding::where)
      .def_readonly("message", &Finding::message)
      .def_readonly("count", &Finding::count, "Places with this cause; the first is `where`")
      .def("__repr__", [](const Finding& finding) {
        return fmt::format("<Finding {}: {}: {}>", name_of(finding.kind), finding.where,
                           with_count(finding.message, finding.count));
      });
  py::class_<FunctionalResult>(module, "Execution",
                               "What a schedule left on random numbers, beside its reference")
      .def_readonly("stale_reads", &FunctionalResult::stale_reads)
      .def_readonly("max_relative_error", &FunctionalResult::max_relative_error)
      .def_readonly("error_of_rank", &FunctionalResult::error_of_rank)
      .def_property_readonly("right", [](const FunctionalResult& result) {
        return result.stale_reads.empty() && result.max_relative_error <= result.right_within;
      });
}

}  // namespace

void add_schedules(py::module_& module) {
  py::class_<BoundSchedule>(module, "Schedule", "A tile schedule: all that a run does, whatever the machine")
      .def_property_readonly("name", [](const BoundSchedule& schedule) { return schedule->name; })
      .def_property_readonly("ranks", [](const BoundSchedule& schedule) { return schedule->ranks; })
      .def_property_readonly("operations", [](const BoundSchedule& schedule) { return schedule->ops.size(); })
      .def_property_readonly("pattern", &pattern_of, "None unless a pattern built it")
      .def_property_readonly("knobs", &knobs_of, "All that the pattern has, given or not")
      .def_property_readonly("kernels", &kernels_of)
      .def_property_readonly("buffers", &buffers_of)
      .def(
          "to_json",
          [](const BoundSchedule& schedule, bool pretty) { return schedule_to_json(*schedule, pretty); },
          py::arg("pretty") = false)
      .def("save", &save, py::arg("path"), py::arg("pretty") = false,
           "Writes it as JSON, for any of the programs")
      .def("__repr__", [](const BoundSchedule& schedule) {
        return fmt::format("<Schedule {}: {} ranks, {} operations>", schedule->name, schedule->ranks,
                           schedule->ops.size());
      });
  add_findings(module);
  module.def("schedule", &schedule_of, py::arg("problem"), py::arg("machine"),
             py::arg("pattern") = py::none(),
             "The schedule of a pattern, knobs by keyword; what nobody gives is at the machine's default");
  module.def(
      "schedule_from_json",
      [](const std::string& text, const std::string& origin) {
        return BoundSchedule(schedule_from_json(text, origin));
      },
      py::arg("text"), py::arg("origin") = "JSON");
  module.def(
      "read_schedule",
      [](const py::object& path) { return BoundSchedule(read_schedule(paths_of(path).at(0))); },
      py::arg("path"));
  module.def("check", &check, py::arg("schedule"), py::arg("machine") = py::none(), py::kw_only(),
             py::arg("progress") = py::none(),
             "Deadlocks, unordered reads, what is out of range; with a machine also what does not fit. "
             "Empty: sound");
  module.def("execute", &execute, py::arg("schedule"), py::arg("machine"), py::kw_only(), py::arg("seed") = 1,
             "Runs it on random numbers in simulated order and compares what it leaves with its reference");
}

}  // namespace tritax::python
