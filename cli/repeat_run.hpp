// Repeats a run that a search found: as a scenario, and as a command line.
#pragma once

#include <string>

#include "model/scenario/scenario.hpp"

namespace tritax::cli {

// The text as one shell word, quoted where needed.
std::string shell_word(const std::string& text);

// The scenario of a pattern with the knobs of a search. Given knobs are those that the pattern uses and whose
// values differ from the default. `machine`: name or path, as the user gave it.
Scenario scenario_of_run(const Problem& problem, const Pattern& pattern, const Values& knobs,
                         const std::string& machine, const Machine& on);

// "tritax simulate --pattern …", which runs the scenario; `options` stands behind it (" --sustained").
std::string command_of_run(const Scenario& scenario, const std::string& options);

}  // namespace tritax::cli
