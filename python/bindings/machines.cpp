#include <fmt/format.h>
#include <pybind11/stl.h>

#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/machine/changes.hpp"
#include "model/machine/machine.hpp"
#include "model/machine/parameters.hpp"
#include "model/machine/write_machine.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/values.hpp"

namespace tritax::python {

namespace py = pybind11;

namespace {

Machine load_machine(const py::object& name_or_path, const py::object& set, const py::object& scale) {
  const std::vector<std::string> names = paths_of(name_or_path);
  if (names.size() != 1) throw UserError("machine: give one name or path");
  return changed(find_machine(names.front()), changes_of(set, scale));
}

double value_of(const Machine& machine, const std::string& key) {
  if (find_parameter_spec(key) != nullptr) return parameter_value(machine, key);
  std::vector<std::string> keys;
  for (const Parameter& one : machine.parameters) keys.push_back(one.key);
  const std::string nearest = nearest_name(key, keys);
  throw UserError(fmt::format("machine '{}': there is no parameter '{}'{}; Machine.parameters lists all",
                              machine.name, key,
                              nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest)));
}

py::list parameters_of(const Machine& machine) {
  py::list rows;
  for (const Parameter& one : machine.parameters) {
    py::dict row;
    row["key"] = one.key;
    row["value"] = one.value;
    row["unit"] = one.unit;
    row["source"] = one.source;
    row["how"] = std::string(kProvenanceNames[static_cast<std::size_t>(one.how)]);
    row["residual"] = one.residual;
    rows.append(std::move(row));
  }
  return rows;
}

}  // namespace

void add_machines(py::module_& module) {
  py::class_<Machine>(module, "Machine", "A node: one kind of GPU, how they are linked, what the host pays")
      .def_readonly("name", &Machine::name)
      .def_readonly("description", &Machine::description)
      .def_readonly("nodes", &Machine::nodes)
      .def_readonly("gpus_per_node", &Machine::gpus_per_node)
      .def_property_readonly("gpu_count", &Machine::gpu_count)
      .def_property_readonly("gpu_name", [](const Machine& machine) { return machine.gpu.name; })
      .def_property_readonly("cu_count", [](const Machine& machine) { return machine.gpu.cu_count(); })
      .def_property_readonly("title", &Machine::title, "The name, and what differs from its file")
      .def_property_readonly("changes", &describe_changes, "What differs from its file, a line each")
      .def_property_readonly("parameters", &parameters_of,
                             "Every line of its file: key, value in its unit, source, how it was obtained")
      .def("__getitem__", &value_of, py::arg("key"),
           "A parameter by its key, in internal units: ns, bytes, GB/s, GHz, shares from 0 to 1")
      .def(
          "changed",
          [](const Machine& machine, const py::object& set, const py::object& scale) {
            return changed(machine, changes_of(set, scale));
          },
          py::kw_only(), py::arg("set") = py::none(), py::arg("scale") = py::none(),
          "The machine with other parameters, {key: \"32GB/s\"} and {key: factor}, and what follows from "
          "them")
      .def(
          "sustained", [](const Machine& machine) { return sustained(machine); },
          "The machine after long load: lower clocks, where it knows them")
      .def(
          "toml", [](const Machine& machine) { return write_machine(machine, machine.title()); },
          "The text of a machine file")
      .def("__repr__", [](const Machine& machine) { return fmt::format("<Machine {}>", machine.title()); });
  module.def("machines", &shipped_machines, "Names of the shipped machines");
  module.def("machine", &load_machine, py::arg("name_or_path"), py::kw_only(), py::arg("set") = py::none(),
             py::arg("scale") = py::none(),
             "A shipped machine by name, or that of a TOML file; `set` and `scale` as in Machine.changed");
}

}  // namespace tritax::python
