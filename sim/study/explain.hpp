// Explains the time of a run in sentences: the largest parts of its critical path, how its tiles fill the
// compute units, how busy the links are, what the taxes cost, and which inputs it depends on.
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
  Timeline timeline;              // when operations ran, and the traffic of links
  std::vector<Overlap> overlaps;  // by GPU
  std::vector<std::string> sentences;
  std::vector<Sensitivity> with_effect;     // strongest first
  std::vector<Sensitivity> without_effect;  // no possible variation changes the time
  std::vector<Sensitivity> not_variable;    // no variation could run; each with the reason
};

// Time that the run saves without each of the three taxes and without all of them.
std::string describe_taxes(const Taxes& taxes);

// The taxes without which the run takes longer, and why that can be; empty if there are none.
std::string describe_longer(const Taxes& taxes);

// Whether inputs are varied: some hundred runs, against half a dozen for the rest.
enum class Inputs : std::uint8_t { varied, left_out };

// Explains the run of `schedule` on `machine`. `rebuild` as in `sensitivities`; `options` without an
// observer. Throws UserError as `simulate` does.
Explanation explain(const Schedule& schedule, const Machine& machine, const Rebuild* rebuild,
                    const SimulationOptions& options, const ProgressCall& progress,
                    Inputs inputs = Inputs::varied);

}  // namespace tritax
