// Declares the players of player.hpp, one function each. Internal to model/select/game.
#pragma once

#include "model/select/game/player.hpp"

namespace tritax {

void play_annealing(Game& game);
void play_greedily(Game& game);
void play_evolution(Game& game);
void play_at_random(Game& game);

}  // namespace tritax
