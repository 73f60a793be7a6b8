// Calibration of a machine file by microbenchmarks.
#include <fmt/format.h>
#include <pybind11/stl.h>
#include <tbb/global_control.h>

#include <cmath>
#include <memory>
#include <optional>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/microbench/read_microbench.hpp"
#include "python/bindings/calls.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/runs.hpp"
#include "python/bindings/values.hpp"
#include "sim/study/calibrate/calibrate.hpp"

namespace tritax::python {

namespace py = pybind11;

namespace {

struct PythonCalibration {
  Machine machine;
  py::list parameters;
  py::list rows;
};

py::list parameter_rows(const Calibration& found) {
  py::list rows;
  for (const CalibratedParameter& one : found.parameters) {
    py::dict row;
    row["key"] = one.key;
    row["unit"] = one.unit;
    row["old"] = one.old_value;
    row["new"] = one.value;
    row["determined"] = one.determined;
    row["rows"] = one.rows;
    row["residual"] = one.residual;
    row["standard_error"] = one.standard_error;
    row["remark"] = one.remark;
    rows.append(std::move(row));
  }
  return rows;
}

py::list measured_rows(const Calibration& found) {
  py::list rows;
  for (const CalibratedRow& one : found.rows) {
    py::dict row;
    row["group"] = one.group;
    row["name"] = one.name;
    row["parameters"] = one.parameters;
    row["measured_us"] = one.measured_us;
    row["simulated_us"] = one.simulated_us;
    row["fitted"] = one.fitted;
    row["error"] = one.error();
    rows.append(std::move(row));
  }
  return rows;
}

PythonCalibration calibrate_python(const Machine& base, const py::object& microbench,
                                   const std::optional<std::string>& name, int threads,
                                   const py::object& progress) {
  threads_of(threads);
  const std::vector<std::string> files = paths_of(microbench);
  if (files.empty())
    throw UserError("microbench: give one file or more, as 'tritax-gpu microbench' writes them");
  if (name && (name->empty() || find_control(*name) != std::string::npos)) {
    throw UserError("name: it must not be empty or hold control characters; None keeps the base's");
  }
  Calibration found;
  run_call(progress, [&](Call& call) {
    std::unique_ptr<tbb::global_control> cores;
    if (threads > 0) {
      cores = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                    static_cast<std::size_t>(threads));
    }
    const MicrobenchTable table = read_microbench(files, base.gpus_per_node, base.gpu.cu_count());
    CalibrateOptions options;
    options.stop = &call.stop();
    options.simulated = [&call](std::uint64_t simulations) { call.report(simulations, 0); };
    found = calibrate(base, table, name.value_or(base.name), options);
  });
  // The doubts belong to the base machine.
  found.machine.doubts.clear();
  return {found.machine, parameter_rows(found), measured_rows(found)};
}

}  // namespace

void add_calibrations(py::module_& module) {
  using C = PythonCalibration;
  py::class_<C>(module, "Calibration", "A machine whose parameters were fitted to microbenchmarks")
      .def_readonly("machine", &C::machine, "Complete; Machine.toml() is its file")
      .def_readonly("parameters", &C::parameters, "A row a parameter: old and new value, how well determined")
      .def_readonly("rows", &C::rows, "A row a microbenchmark: measured, and simulated on the new machine")
      .def(
          "frame", [](const C& one) { return frame_of(one.parameters); },
          "The parameters as a pandas.DataFrame");
  module.def(
      "calibrate", &calibrate_python, py::arg("base"), py::arg("microbench"), py::kw_only(),
      py::arg("name") = py::none(), py::arg("threads") = 0, py::arg("progress") = py::none(),
      "A machine from the rows of files that 'tritax-gpu microbench' wrote; `base` gives what they do not "
      "determine. progress(simulations done, 0): how many there will be is not known");
}

}  // namespace tritax::python
