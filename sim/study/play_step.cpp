#include "sim/study/play_step.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/levels/k_step_of_tile.hpp"
#include "model/select/game/step_board.hpp"

namespace tritax {

namespace {

void play_step(const KStep& step, const Player& player, const GameOptions& options, StepPlay& play) {
  StepOrderBoard board(step);
  const StepTime start = board.evaluate();
  play.written_cycles = StepBoard(step).cycles(written_order(step));
  play.start_bound = start.bound;
  play.least_cycles = *std::max_element(start.busy.begin(), start.busy.end());
  const auto begin = std::chrono::steady_clock::now();
  Game game(board, options);
  player.play(game);
  play.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  play.start_cycles = game.start_time();
  play.evaluated = game.evaluated();
  play.masked = game.masked();
  const std::vector<Move> best = game.best_moves();
  const double found = game.best_time();
  game.back_to_start();
  const std::int64_t spare = std::clamp<std::int64_t>(play.evaluated / 4, 200, 4000);
  for (const Move& move : needed_moves(board, best, play.start_cycles, found, spare)) {
    const std::string text = board.describe(move);
    const bool made = board.make(move);
    TRITAX_ASSERT(made, "the moves of what was found are legal");
    play.moves.push_back({move, text, board.time()});
  }
  TRITAX_ASSERT(board.lawful(), "legal swaps lead to legal orders");
  const StepTime end = board.evaluate();
  play.found_cycles = end.cycles;
  play.found_bound = end.bound;
  for (const std::int32_t index : board.order()) {
    play.order.push_back(step.instructions[static_cast<std::size_t>(index)].name);
  }
}

}  // namespace

std::vector<StepPlay> play_on_steps(const Schedule& schedule, const Machine& machine, const Player& player,
                                    const GameOptions& game, bool as_machine_code) {
  std::vector<StepPlay> plays;
  for (KernelLevels& kernel : levels_of(schedule, machine)) {
    StepPlay play;
    play.kernel = std::move(kernel);
    play.refusal = play.kernel.refusal;
    if (play.kernel.levels) {
      KStepOptions options;
      options.as_machine_code = as_machine_code;
      play_step(k_step_of(machine.gpu, *play.kernel.levels, options), player, game, play);
    }
    plays.push_back(std::move(play));
  }
  return plays;
}

}  // namespace tritax
