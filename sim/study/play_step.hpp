// A better order for the instructions of the K steps of a schedule's kernels, by the game of
// model/select/game. A steady state has no random shares, so the found order needs no further judging.
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
  double cycles = 0;  // per turn, after the move
};

struct StepPlay {
  KernelLevels kernel;
  std::string refusal;        // why there is no step to play on; then the other fields are empty
  double written_cycles = 0;  // per turn, as the lowering writes the step
  double start_cycles = 0;    // list scheduling
  double found_cycles = 0;
  std::string start_bound;  // StepTime::bound
  std::string found_bound;
  double least_cycles = 0;  // lower bound for any order: the busiest unit
  std::vector<PlayedInstruction> moves;
  std::vector<std::string> order;  // names of the instructions, in the found order
  std::int64_t evaluated = 0;
  std::int64_t masked = 0;
  double seconds = 0;

  double gain() const { return 1 - found_cycles / start_cycles; }
};

// One game per kind of tile of the schedule's kernels; empty if the schedule multiplies nothing.
// `as_machine_code`: by the rules of a game over machine code, KStepOptions.
std::vector<StepPlay> play_on_steps(const Schedule& schedule, const Machine& machine, const Player& player,
                                    const GameOptions& game, bool as_machine_code);

}  // namespace tritax
