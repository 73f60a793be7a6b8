// tritax explain --level: the kernels of a run below the tile level.
#pragma once

#include <string_view>

#include "cli/output.hpp"
#include "cli/run_input.hpp"

namespace tritax::cli {

enum class Level { tile, wave, instruction };

// A level below the tile. Throws UserError for other names.
Level parse_level(std::string_view name);

// Shows how the tiles of the input's kernels lower to waves, or to instructions and their schedule, as
// tables and in the requested output forms. Throws UserError if no kernel multiplies.
void show_levels(const RunInput& run_input, Level level, Outputs& outputs);

}  // namespace tritax::cli
