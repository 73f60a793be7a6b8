// Which inputs a run depends on: every parameter of the machine and every knob of the pattern is varied, and
// the run is simulated again.
//
// A parameter is made 10 % smaller and 10 % larger (a whole number by at least one), a switch is turned; a
// tile side is halved and doubled, a name takes its other values. Variations that the bounds of the parameter
// or the schedule forbid are kept with the reason.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/workload.hpp"
#include "sim/simulate.hpp"

namespace tritax {

// How to rebuild the schedule for another machine or other knobs.
struct Rebuild {
  std::function<Schedule(const Machine&, const Values&)> build;
  const Pattern* pattern = nullptr;  // its knobs are varied; null: no knobs
  Values knobs;                      // given values
};

// One other value of an input, and the time of the run with it.
struct Variation {
  std::string value;
  double makespan_ns = std::numeric_limits<double>::quiet_NaN();  // NaN if the run is impossible
  std::string obstacle;                                           // why it is impossible
};

struct Sensitivity {
  std::string input;  // "fabric.link" (key of the machine file) or "knob comm_cus"
  std::string value;  // given value, in internal units
  std::vector<Variation> variations;
  double effect = 0;       // the largest relative change of the makespan, with its sign
  bool could_run = false;  // at least one variation could run
};

// Called from several threads with the number of simulations done; may be empty.
using ProgressCall = std::function<void(std::size_t done, std::size_t total)>;

// Strongest effect first; equal effects in the order of the machine file, knobs last. `makespan_ns` is the
// time of the unchanged run, under the same options. With a null `rebuild` the schedule stays unchanged and
// only the machine is varied. Uses the cores that oneTBB grants; the result does not depend on their number.
std::vector<Sensitivity> sensitivities(const Schedule& schedule, const Machine& machine,
                                       const Rebuild* rebuild, double makespan_ns,
                                       const SimulationOptions& options, const ProgressCall& progress);

}  // namespace tritax
