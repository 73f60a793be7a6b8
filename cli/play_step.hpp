// tritax play --level instruction: the K steps of a run's kernels.
#pragma once

#include "cli/output.hpp"
#include "cli/run_input.hpp"
#include "model/select/game/player.hpp"

namespace tritax::cli {

// Plays, and shows the result in the requested forms. Throws UserError if no kernel of the schedule
// multiplies.
void play_instructions(const RunInput& run_input, const Player& player, const GameOptions& game,
                       bool as_machine_code, Outputs& outputs);

}  // namespace tritax::cli
