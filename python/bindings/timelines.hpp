// Timelines as numpy arrays.
#pragma once

#include <pybind11/pybind11.h>

#include "model/machine/machine.hpp"
#include "model/timeline/counters.hpp"
#include "model/timeline/timeline.hpp"
#include "python/bindings/schedules.hpp"

namespace tritax::python {

struct Recorded {
  Timeline timeline;
  Counters counters;
};

// Requires the interpreter's lock.
pybind11::object to_python(Recorded recorded, const BoundSchedule& schedule, const Machine& machine);

}  // namespace tritax::python
