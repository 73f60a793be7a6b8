// How a run that a search found is made again: as a scenario, and as a command line.
#pragma once

#include <string>

#include "model/scenario/scenario.hpp"

namespace tritax::cli {

// As a shell takes it for one word: quoted where it must be.
std::string shell_word(const std::string& text);

// The scenario of a pattern with the knobs of a search: those that the pattern has are given, where they are
// not what it would take anyway. `machine`: name or path, as it was asked for.
Scenario scenario_again(const Problem& problem, const Pattern& pattern, const Values& knobs,
                        const std::string& machine, const Machine& on);

// "tritax simulate --pattern …" that runs the scenario; `options` stands behind it (" --sustained").
std::string command_again(const Scenario& scenario, const std::string& options);

}  // namespace tritax::cli
