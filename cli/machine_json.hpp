// A machine as JSON: its description, and every parameter with unit, origin and source.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/machine/machine.hpp"

namespace tritax::cli {

// "calibrated", as in machine files.
std::string provenance_name(Provenance how);

nlohmann::ordered_json machine_json(const Machine& machine);

}  // namespace tritax::cli
