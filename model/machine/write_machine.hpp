// Writes machine files: the counterpart of `read_machine`.
#pragma once

#include <string>

#include "model/machine/machine.hpp"

namespace tritax {

// A whole machine file with every entry of `machine.parameters` (value, unit, source, how, serves, residual),
// in the order of the reader's tables, and with the machine's doubts; `head` becomes comment lines above.
// Reading the text gives an equal machine.
std::string write_machine(const Machine& machine, const std::string& head);

}  // namespace tritax
