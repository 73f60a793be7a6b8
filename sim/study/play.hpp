// A better order for the operations of a schedule, by the game of model/select/game with the simulator as the
// clock.
//
// The share that a transfer gets of a full link is random, drawn by place (sim/study/spread.hpp): a player
// who could see the draw would look for schedules with a good draw, not for better schedules. So the game is
// played on the machine without random shares, where equal requesters get equal service. The result is then
// judged with random shares: start and found schedule run with the same seeds, which the game has not seen,
// and the mean of the differences counts, with its standard error.
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

// How positions are timed and checked.
struct PlayClock {
  std::uint64_t seed = 1;  // of the remaining randomness of the game's machine, and of the judging runs
  int draws = 16;          // runs with random shares, of the start and of the found schedule; 0: none
  // Every timed position is also checked, and executed on random numbers. Throws UserError if one is refused
  // or computes a wrong result, which is a defect of the mask.
  bool executes = false;
};

// One move of the result.
struct PlayedMove {
  Move move;
  std::string track;  // name of the track
  std::string text;   // Board::describe
  // Time after the move, without random shares; none for a position that only later moves make lawful.
  std::optional<double> time_ns;
};

// A gain is the share of the start's time that is saved.
struct PlayResult {
  double start_ns = 0;  // without random shares
  double found_ns = 0;
  std::vector<double> start_draws_ns;  // with random shares, seed by seed
  std::vector<double> found_draws_ns;
  std::vector<PlayedMove> moves;   // moves from the start to the found schedule
  std::vector<std::string> order;  // operations with a new place; describe_order
  Schedule found;
  std::int64_t evaluated = 0;
  std::int64_t masked = 0;          // proposals
  std::int64_t refused_by_law = 0;  // … of which the checker or the order of data refused
  double seconds = 0;               // duration of the game

  double gain() const { return 1 - found_ns / start_ns; }
  double gain_with_random_shares() const;  // of the means; 0 without draws
  double error_of_gain() const;            // its standard error, by the differences of pairs; 0 without draws
};

// A game played from outside, for example by a player in Python; it owns all data of its board.
class OpenGame {
 public:
  // Throws UserError as TileBoard and `simulate` do.
  OpenGame(const Schedule& start, const Machine& machine, GameOptions game, const PlayClock& clock);
  OpenGame(const OpenGame&) = delete;
  OpenGame& operator=(const OpenGame&) = delete;

  TileBoard& board() { return board_; }
  Game& game() { return game_; }

  // The result, as play_on_tiles gives it. Call it once: afterwards the board is no longer at the game's
  // position.
  PlayResult finish();

 private:
  Schedule start_;
  Machine machine_;
  Machine even_;  // without random shares
  PlayClock clock_;
  TileBoard board_;
  Game game_;
  std::chrono::steady_clock::time_point begin_;
};

// Throws UserError as TileBoard and `simulate` do. If the gain is not above rounding, `moves` is empty and
// `found` is the start.
PlayResult play_on_tiles(const Schedule& start, const Machine& machine, const Player& player,
                         const GameOptions& game, const PlayClock& clock);

// Replays the moves. Throws UserError for the first move that two neighbours or a program refuse, and if the
// final position is not lawful.
PlayResult replay_on_tiles(const Schedule& start, const Machine& machine, const std::vector<Move>& moves,
                           const PlayClock& clock);

// A move with the names of tracks, in JSON: {"track": "all of gemm", "place": 2, "grain": "step", "steps":
// -1}, and "kind": "swap" or "give" if it goes to another workgroup. The file has a list of moves, or an
// object with such a list as "moves", as `tritax play --json` writes it. Throws UserError with place, value
// and the allowed values.
std::vector<Move> read_moves(const std::string& path, const Board& board);

// A part of the output of `tritax play --json`: schema, player, start, found and moves.
std::string play_to_json(const PlayResult& result, const std::string& player);

}  // namespace tritax
