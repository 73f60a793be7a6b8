// A better order for the operations of a schedule, by the game of model/select/game with the simulator as the
// clock.
//
// Who gets which share of a full link is luck, drawn by place (sim/study/spread.hpp): a player who could see
// the draw would look for schedules that are lucky, not for better ones. So the game is played on the machine
// without luck, where equal requesters are served alike, and what was found is then judged with it: start and
// found run with the same seeds, which the game has not seen, and the mean of the differences counts, beside
// its standard error.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "model/select/game/player.hpp"
#include "model/select/game/tile_board.hpp"

namespace tritax {

// How positions are timed, and proved.
struct PlayClock {
  std::uint64_t seed = 1;  // of what luck there is on the machine of the game, and of judging
  int draws = 16;          // with luck, of the start and of what was found; 0: none
  // Every position that is timed is checked, and executed on random numbers, too. Throws UserError where one
  // is refused or computes something wrong, which is a defect of the mask.
  bool executes = false;
};

// One move of what was found.
struct PlayedMove {
  Move move;
  std::string track;  // its name
  std::string text;   // Board::describe
  // Behind it, on the machine without luck; none of a position that only the moves behind it make lawful.
  std::optional<double> time_ns;
};

// A gain is the share of the start's time that is saved.
struct PlayResult {
  double start_ns = 0;  // without luck
  double found_ns = 0;
  std::vector<double> start_draws_ns;  // with luck, seed by seed
  std::vector<double> found_draws_ns;
  std::vector<PlayedMove> moves;   // that lead from the start to what was found
  std::vector<std::string> order;  // what stands elsewhere now; describe_order
  Schedule found;
  std::int64_t evaluated = 0;
  std::int64_t masked = 0;          // proposals
  std::int64_t refused_by_law = 0;  // of these, by checker and order of data
  double seconds = 0;               // that the game took

  double gain() const { return 1 - found_ns / start_ns; }
  double gain_with_luck() const;  // of the means; 0 without draws
  double error_of_gain() const;   // standard error of it, by the differences of pairs; 0 without draws
};

// A game in the hands of whoever plays from outside, as a player in Python does: it owns all that its board
// needs.
class OpenGame {
 public:
  // Throws UserError as TileBoard and `simulate` do.
  OpenGame(const Schedule& start, const Machine& machine, GameOptions game, const PlayClock& clock);
  OpenGame(const OpenGame&) = delete;
  OpenGame& operator=(const OpenGame&) = delete;

  TileBoard& board() { return board_; }
  Game& game() { return game_; }

  // What came of it, as play_on_tiles says. Afterwards the board is no longer at the game's position; ask
  // once.
  PlayResult finish();

 private:
  Schedule start_;
  Machine machine_;
  Machine even_;  // without luck
  PlayClock clock_;
  TileBoard board_;
  Game game_;
  std::chrono::steady_clock::time_point begin_;
};

// Throws UserError as TileBoard and `simulate` do. Without a gain that is worth more than rounding, `moves`
// is empty and `found` the start.
PlayResult play_on_tiles(const Schedule& start, const Machine& machine, const Player& player,
                         const GameOptions& game, const PlayClock& clock);

// The moves again. Throws UserError for the first that two neighbours or a program refuse, and if where they
// lead to is not lawful.
PlayResult replay_on_tiles(const Schedule& start, const Machine& machine, const std::vector<Move>& moves,
                           const PlayClock& clock);

// A move by the names of tracks, in JSON: {"track": "all of gemm", "place": 2, "grain": "step", "steps": -1},
// and "kind": "swap" or "give" if it goes to another workgroup.
// A list of them, or an object that has one as "moves", as `tritax play --json` writes it. Throws UserError
// with place, value and what is allowed.
std::vector<Move> read_moves(const std::string& path, const Board& board);

// What `tritax play --json` writes of a result, without what else stands there: schema, player, start, found
// and moves.
std::string play_to_json(const PlayResult& result, const std::string& player);

}  // namespace tritax
