// Selects the scenarios of a measurement. Plain host code.
#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace tritax::gpu {

struct Selection {
  std::vector<std::string> files;  // scenario files (docs/scenarios.md)
  std::vector<std::string> ids;    // of scenarios, complete or up to a "/"; empty: all
  std::vector<int> gpus;           // instead of the files' numbers of GPUs; empty: as the files say
  std::string machine;             // its compute units and dies shape the schedules; empty: as the files say
};

// The scenarios, once per number of GPUs, in the order of the files. Vendors' patterns are left out: their
// schedules model a vendor's library, which the scripts in baselines/ measure. Throws UserError for
// unreadable files, scenarios without a pattern, ids without a scenario, and numbers of GPUs that a scenario
// cannot have.
std::vector<Scenario> select_scenarios(const Selection& selection);

}  // namespace tritax::gpu
