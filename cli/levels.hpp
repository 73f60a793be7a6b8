// tritax explain --level: the kernels of a run below the tile.
#pragma once

#include <string_view>

#include "cli/output.hpp"
#include "cli/subject.hpp"

namespace tritax::cli {

enum class Level { tile, wave, instruction };

// One of those below the tile. Throws UserError for what is neither.
Level parse_level(std::string_view name);

// How the tiles of the subject's kernels lower to waves, or down to instructions and their schedule, as
// tables and in the other forms that were asked for. Throws UserError if nothing of it multiplies.
void show_levels(const Subject& subject, Level level, Outputs& outputs);

}  // namespace tritax::cli
