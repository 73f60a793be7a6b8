#include "python/bindings/workloads.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include "model/core/error.hpp"
#include "model/workloads/registry.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/values.hpp"

namespace tritax::python {

namespace py = pybind11;

namespace {

constexpr std::array<const char*, 5> kKindNames{"integer", "name", "boolean", "bytes",
                                                "file"};  // by ValueKind

py::list rows_of(std::span<const Spec> specs) {
  const Values usual(specs);
  py::list rows;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Spec& spec = specs[i];
    const bool named = spec.kind == ValueKind::name || spec.kind == ValueKind::boolean;
    py::dict row;
    row["name"] = std::string(spec.name);
    row["help"] = std::string(spec.help);
    row["kind"] = kKindNames[static_cast<std::size_t>(spec.kind)];
    row["usual"] = spec.required ? py::object(py::none()) : to_python(usual, i);
    row["low"] = named ? py::object(py::none()) : py::int_(spec.low);
    row["high"] = named ? py::object(py::none()) : py::int_(spec.high);
    row["names"] = std::vector<std::string>(spec.names.begin(), spec.names.end());
    rows.append(std::move(row));
  }
  return rows;
}

py::list patterns_of(const Workload& workload) {
  py::list rows;
  for (const Pattern& pattern : workload.patterns) {
    py::dict row;
    row["name"] = std::string(pattern.name);
    row["summary"] = std::string(pattern.summary);
    row["knobs"] = std::vector<std::string>(pattern.knobs.begin(), pattern.knobs.end());
    row["vendor"] = pattern.vendor;
    rows.append(std::move(row));
  }
  return rows;
}

std::vector<std::string> names_of_workloads() {
  std::vector<std::string> names;
  for (const Workload* workload : workloads()) names.emplace_back(workload->name);
  return names;
}

Problem make_problem(const std::string& name, const py::kwargs& fields) {
  Problem problem = problem_of(find_workload(name, "problem"));
  give_all(problem.values, fields, name);
  std::vector<std::string_view> missing;
  for (const Spec& spec : problem.workload->fields) {
    if (spec.required && !spec.counts_gpus && !problem.values.given(spec.column(0)))
      missing.push_back(spec.name);
  }
  if (!missing.empty()) {
    throw UserError(fmt::format("{}: {} {} missing and must be given", name, fmt::join(missing, ", "),
                                missing.size() == 1 ? "is" : "are"));
  }
  return problem;
}

// None where the machine decides.
py::object gpus_of(const Problem& problem) {
  for (const Spec& spec : problem.workload->fields) {
    if (spec.counts_gpus && problem.values.given(spec.name)) return py::int_(problem.gpus());
  }
  return py::none();
}

py::dict fields_of(const Problem& problem) {
  py::dict fields = to_dict(problem.values);
  for (const Spec& spec : problem.workload->fields) {
    if (spec.counts_gpus) fields[py::str(std::string(spec.name))] = gpus_of(problem);
  }
  return fields;
}

}  // namespace

Problem problem_on(Problem problem, const Machine& machine) {
  const std::string_view name = problem.workload->name;
  for (const Spec& spec : problem.workload->fields) {
    if (!spec.counts_gpus) continue;
    if (!problem.values.given(spec.name)) problem.values.assume(spec.name, machine.gpu_count());
    const std::int64_t gpus = problem[spec.name];
    if (gpus >= spec.low && gpus <= machine.gpu_count()) continue;
    throw UserError(fmt::format("{}: {}: {} is out of range; give {} to the {} of the machine '{}'", name,
                                spec.name, gpus, spec.low, machine.gpu_count(), machine.name));
  }
  complete_problem(problem, std::string(name));
  return problem;
}

std::string text_of(const Problem& problem) {
  std::vector<std::string> fields;
  for (const auto& [key, value] : fields_of(problem)) {
    if (!value.is_none())
      fields.push_back(fmt::format("{}={}", std::string(py::str(key)), std::string(py::repr(value))));
  }
  return fmt::format("{}({})", problem.workload->name, fmt::join(fields, ", "));
}

void add_workloads(py::module_& module) {
  py::class_<Workload>(module, "Workload", "What is computed, and the patterns that compute it")
      .def_property_readonly("name", [](const Workload& workload) { return std::string(workload.name); })
      .def_property_readonly("title", [](const Workload& workload) { return std::string(workload.title); })
      .def_property_readonly("summary",
                             [](const Workload& workload) { return std::string(workload.summary); })
      .def_property_readonly("baseline",
                             [](const Workload& workload) { return std::string(workload.baseline); })
      .def_property_readonly("fields", [](const Workload& workload) { return rows_of(workload.fields); })
      .def_property_readonly("knobs", [](const Workload& workload) { return rows_of(workload.knobs); })
      .def_property_readonly("patterns", &patterns_of)
      .def("__repr__", [](const Workload& workload) { return fmt::format("<Workload {}>", workload.name); });
  py::class_<Problem>(module, "Problem", "A workload and the values of its fields")
      .def_property_readonly("workload", [](const Problem& problem) { return problem.workload; })
      .def_property_readonly("fields", &fields_of)
      .def_property_readonly("gpus", &gpus_of, "None: all of the machine")
      .def("__eq__", [](const Problem& a, const Problem& b) { return a == b; })
      .def("__repr__", [](const Problem& problem) { return fmt::format("<Problem {}>", text_of(problem)); });
  module.def("workloads", &names_of_workloads, "Names of the workloads");
  module.def(
      "workload", [](const std::string& name) { return &find_workload(name, "workload"); },
      py::return_value_policy::reference, py::arg("name"));
  module.def("problem", &make_problem, py::arg("workload"), "A problem of a workload, fields by keyword");
}

}  // namespace tritax::python
