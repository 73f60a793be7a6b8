// A better order for the instructions of the K steps of a schedule's kernels, by the game of
// model/select/game. There is no luck in a steady state: what is found is found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/parts/levels/schedule_levels.hpp"
#include "model/schedule/schedule.hpp"
#include "model/select/game/player.hpp"

namespace tritax {

struct PlayedInstruction {
  Move move;
  std::string text;
  double cycles = 0;  // of a turn, behind it
};

struct StepPlay {
  KernelLevels kernel;
  std::string refusal;        // why there is no step to play on; the rest is empty then
  double written_cycles = 0;  // of a turn, as the lowering writes it down
  double start_cycles = 0;    // list scheduling
  double found_cycles = 0;
  std::string start_bound;  // StepTime::bound
  std::string found_bound;
  double least_cycles = 0;  // that no order can beat: the unit that is taken longest
  std::vector<PlayedInstruction> moves;
  std::vector<std::string> order;  // names of the instructions, as found
  std::int64_t evaluated = 0;
  std::int64_t masked = 0;
  double seconds = 0;

  double gain() const { return 1 - found_cycles / start_cycles; }
};

// One game a kind of tile that kernels of the schedule have; empty if it multiplies nothing.
// `as_machine_code`: by the rules of a game over machine code, KStepOptions.
std::vector<StepPlay> play_on_steps(const Schedule& schedule, const Machine& machine, const Player& player,
                                    const GameOptions& game, bool as_machine_code);

}  // namespace tritax
