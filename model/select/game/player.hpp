// Defines the players of the game of schedules and its rules; board.hpp defines the board.
//
// A player tries moves, gets the time of each new position, and keeps a move or takes it back. A player ends
// when its number of evaluated moves is used up. The result is the best position ever reached; a player
// returns nothing. A new player is a function and a row of players(). This player keeps every gain:
//
//   void play_first_gain(Game& game) {
//     while (!game.over()) {
//       const double before = game.time();
//       const std::optional<double> after = game.try_move(game.propose());
//       if (after && *after >= before) game.take_back();
//     }
//   }
//
// The reward of a move, as in CuAsmRL (arXiv:2501.08071), is in percent of the speed at the start:
//
//   r = 100 (t_start / t_after - t_start / t_before)
//
// so that the rewards of an episode add up to its gain in speed. The same seed gives the same game.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/select/game/board.hpp"

namespace tritax {

struct GameOptions {
  std::int64_t moves = 10'000;  // evaluated moves
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;  // ends the game as if the moves were used up; may be null
  std::function<void(std::int64_t evaluated)> progress{};  // may be empty
};

class Game {
 public:
  // Evaluates the start. The board must be at its start and outlive the game.
  Game(Board& board, GameOptions options);

  double start_time() const { return start_time_; }
  // Time of the position. Unknown for positions that play_all or back_to_best passed without evaluation.
  double time() const { return time_; }
  double best_time() const { return best_time_; }
  const std::vector<Move>& best_moves() const { return best_moves_; }
  const std::vector<Move>& moves() const { return moves_; }  // from the start to the position
  std::int64_t evaluated() const { return evaluated_; }
  std::int64_t masked() const { return masked_; }  // proposed but not allowed
  bool over() const;
  double progress() const;  // share of the moves used up

  // Makes the move and evaluates it: returns the time of the new position, and updates the best position. If
  // the move is masked, changes and returns nothing.
  std::optional<double> try_move(const Move& move);
  void take_back();  // the last move
  void back_to_start();
  void back_to_best();
  // Plays from the start all moves that are allowed in their turn, with one evaluation. Afterwards moves()
  // has the moves that were made.
  double play_all(std::span<const Move> moves);

  // A random move: half of the moves are in wide tracks, by 1, 2, 4, … places. The move may be masked.
  Move propose();
  std::uint64_t below(std::uint64_t bound);  // uniform random number, bound > 0
  double chance();                           // uniform random number in [0, 1)

 private:
  void evaluate();
  void go_to(std::span<const Move> moves);

  Board& board_;
  GameOptions options_;
  std::mt19937_64 random_;
  double start_time_ = 0;
  double time_ = 0;
  double best_time_ = 0;
  std::vector<Move> moves_;
  std::vector<double> times_;  // time before each move
  std::vector<Move> best_moves_;
  std::int64_t evaluated_ = 0;
  std::int64_t masked_ = 0;
  std::int64_t masked_in_turn_ = 0;  // since the last evaluation; detects a stuck board
};

struct Player {
  std::string_view name;     // "anneal"
  std::string_view summary;  // one line
  void (*play)(Game& game) = nullptr;
};

// The first is the usual one.
std::span<const Player> players();

// Throws UserError that lists the names, with the nearest one offered. `where` is the option to blame.
const Player& find_player(std::string_view name, const std::string& where);

// A list of moves that leads to a position, without unneeded moves: the remaining list keeps all but 1 % of
// the gain, and is lawful. Times at most `evaluations` positions. The board is at its start before and after.
std::vector<Move> needed_moves(Board& board, std::vector<Move> moves, double start_time, double time,
                               std::int64_t evaluations);

}  // namespace tritax
