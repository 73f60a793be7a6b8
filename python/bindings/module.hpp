// The parts of the Python module. Each adds its classes and functions, and may use those of earlier parts.
#pragma once

#include <pybind11/pybind11.h>

namespace tritax::python {

void add_machines(pybind11::module_& module);
void add_workloads(pybind11::module_& module);
void add_schedules(pybind11::module_& module);
void add_builder(pybind11::module_& module);
void add_timelines(pybind11::module_& module);
void add_runs(pybind11::module_& module);
void add_studies(pybind11::module_& module);
void add_comparisons(pybind11::module_& module);
void add_calibrations(pybind11::module_& module);
void add_play(pybind11::module_& module);
void add_models(pybind11::module_& module);

}  // namespace tritax::python
