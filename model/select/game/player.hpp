// Who plays, and by which rules; see board.hpp for what is played on.
//
// A player tries moves, hears what the position takes with each, and keeps it or takes it back. It ends when
// the moves that it may have evaluated are used up. What counts is the best position that was ever reached; a
// player returns nothing. A new one is a function and a row of players(). This one keeps whatever gains:
//
//   void play_first_gain(Game& game) {
//     while (!game.over()) {
//       const double before = game.time();
//       const std::optional<double> after = game.try_move(game.propose());
//       if (after && *after >= before) game.take_back();
//     }
//   }
//
// The reward of a move is that of CuAsmRL (arXiv:2501.08071), in percent of the speed at the start:
//
//   r = 100 (t_start / t_after - t_start / t_before)
//
// so that the rewards of an episode add up to what the speed has gained. The same seed gives the same game.
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
  std::int64_t moves = 10'000;  // that are evaluated
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;  // ends the game as if the moves were used up; may be null
  std::function<void(std::int64_t evaluated)> progress{};  // may be empty
};

class Game {
 public:
  // Evaluates the start. The board must be at its start, and outlive the game.
  Game(Board& board, GameOptions options);

  double start_time() const { return start_time_; }
  // Of the position; not known of one between those that were evaluated, to which play_all or back_to_best
  // gave way.
  double time() const { return time_; }
  double best_time() const { return best_time_; }
  const std::vector<Move>& best_moves() const { return best_moves_; }
  const std::vector<Move>& moves() const { return moves_; }  // that lead from the start to the position
  std::int64_t evaluated() const { return evaluated_; }
  std::int64_t masked() const { return masked_; }  // proposed, and not allowed
  bool over() const;
  double progress() const;  // share of the moves that is used up

  // Makes the move and evaluates it: the time of the new position, which also becomes the best if it is.
  // Nothing, and nothing changed, if it is masked.
  std::optional<double> try_move(const Move& move);
  void take_back();  // the last move
  void back_to_start();
  void back_to_best();
  // From the start, all of the moves that are allowed where they come; one evaluation. Those that were made
  // are moves() then.
  double play_all(std::span<const Move> moves);

  // A move at random: half of them in wide tracks, by 1, 2, 4, … places. It may be masked.
  Move propose();
  std::uint64_t below(std::uint64_t bound);  // at random, evenly, bound > 0
  double chance();                           // at random in [0, 1)

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
  std::vector<double> times_;  // before each of the moves
  std::vector<Move> best_moves_;
  std::int64_t evaluated_ = 0;
  std::int64_t masked_ = 0;
  std::int64_t masked_in_turn_ = 0;  // since the last evaluation: a board may be stuck
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

// A list of moves that leads to a position, without those that it does not need: what is left keeps all but
// 1 % of its gain, and is lawful. At most `evaluations` positions are timed for it. The board is at its start
// before and after.
std::vector<Move> needed_moves(Board& board, std::vector<Move> moves, double start_time, double time,
                               std::int64_t evaluations);

}  // namespace tritax
