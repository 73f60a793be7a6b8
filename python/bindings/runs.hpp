// Results of simulations for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "python/bindings/schedules.hpp"
#include "sim/simulate.hpp"
#include "sim/study/spread.hpp"

namespace tritax::python {

struct Run {
  std::string schedule;
  std::string machine;
  SimulationResult result;
  std::vector<std::string> buffers;
  std::vector<std::string> links;  // names, by edge of the topology
  std::vector<double> link_gb_per_s;
  std::optional<Taxes> taxes;
  std::optional<Spread> spread;
  std::optional<pybind11::object> timeline;  // created and destroyed only with the interpreter's lock
};

Run run_of(SimulationResult result, const Schedule& schedule, const Machine& machine);

// Rows as a pandas.DataFrame; pandas is imported here.
pybind11::object frame_of(const pybind11::object& rows);

}  // namespace tritax::python
