// Why a run takes as long as it does, in sentences: the largest parts of its critical path, how its tiles
// fill the compute units, how busy the links are, what the taxes cost, and which inputs it depends on or does
// not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "model/timeline/overlap.hpp"
#include "sim/simulate.hpp"
#include "sim/study/sensitivity.hpp"

namespace tritax {

struct Explanation {
  SimulationResult result;
  Taxes taxes;
  Timeline timeline;              // what ran when, and what links carried
  std::vector<Overlap> overlaps;  // by GPU
  std::vector<std::string> sentences;
  std::vector<Sensitivity> with_effect;     // strongest first
  std::vector<Sensitivity> without_effect;  // every variation that could run left the time as it is
  std::vector<Sensitivity> not_variable;    // no variation could run; each says why
};

// What the run saves without each of the three taxes and without all of them.
std::string describe_taxes(const Taxes& taxes);

// Without which of the three taxes the run takes longer, and why that can be; empty if without none.
std::string describe_longer(const Taxes& taxes);

// Which part of an explanation is left out: varying the inputs is some hundred runs, the rest half a dozen.
enum class Inputs : std::uint8_t { varied, left_out };

// Explains the run of `schedule` on `machine`. `rebuild` as in `sensitivities`; `options` without observer.
// Throws UserError as `simulate` does.
Explanation explain(const Schedule& schedule, const Machine& machine, const Rebuild* rebuild,
                    const SimulationOptions& options, const ProgressCall& progress,
                    Inputs inputs = Inputs::varied);

}  // namespace tritax
