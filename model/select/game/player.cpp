#include "model/select/game/player.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/core/error.hpp"
#include "model/core/same_time.hpp"
#include "model/select/game/play.hpp"
#include "model/workload/parse_value.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kStuckAfter = 100'000;  // masked proposals in turn
constexpr std::int32_t kFarthest = 4;          // moves pass up to 2^4 neighbours

const std::array<Player, 4> kPlayers{{
    {.name = "greedy", .summary = "the best of 16 moves, while it gains", .play = play_greedily},
    {.name = "anneal",
     .summary = "simulated annealing: also accepts losses, smaller and smaller ones",
     .play = play_annealing},
    {.name = "evolve",
     .summary = "evolution: 16 lists of up to 32 moves, crossed and changed",
     .play = play_evolution},
    {.name = "random", .summary = "episodes of 32 moves at random from the start", .play = play_at_random},
}};

}  // namespace

std::span<const Player> players() { return kPlayers; }

const Player& find_player(std::string_view name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Player& player : kPlayers) names.push_back(player.name);
  return kPlayers[parse_name(std::string(name), where, names)];
}

Game::Game(Board& board, GameOptions options)
    : board_(board), options_(std::move(options)), random_(options_.seed) {
  start_time_ = time_ = best_time_ = board_.time();
}

bool Game::over() const {
  return evaluated_ >= options_.moves || masked_in_turn_ >= kStuckAfter ||
         (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed));
}

double Game::progress() const {
  return static_cast<double>(evaluated_) / static_cast<double>(std::max<std::int64_t>(1, options_.moves));
}

void Game::evaluate() {
  time_ = board_.time();
  ++evaluated_;
  masked_in_turn_ = 0;
  if (later(best_time_, time_)) {
    best_time_ = time_;
    best_moves_ = moves_;
  }
  if (options_.progress) options_.progress(evaluated_);
}

std::optional<double> Game::try_move(const Move& move) {
  if (!board_.make(move)) {
    ++masked_;
    ++masked_in_turn_;
    return std::nullopt;
  }
  times_.push_back(time_);
  moves_.push_back(move);
  evaluate();
  return time_;
}

void Game::take_back() {
  board_.take_back();
  moves_.pop_back();
  time_ = times_.back();
  times_.pop_back();
}

void Game::back_to_start() {
  while (!moves_.empty()) take_back();
  time_ = start_time_;
}

// Goes to the best position. All moves are known to be allowed.
void Game::go_to(std::span<const Move> moves) {
  const auto differ = std::mismatch(moves_.begin(), moves_.end(), moves.begin(), moves.end());
  const auto common = static_cast<std::size_t>(differ.first - moves_.begin());
  while (moves_.size() > common) take_back();
  for (const Move& move : moves.subspan(common)) {
    const bool made = board_.make_unproved(move);
    TRITAX_ASSERT(made, "a move that was made once can be made again in the same position");
    times_.push_back(time_);
    moves_.push_back(move);
  }
  time_ = moves_.empty() ? start_time_ : best_time_;
}

void Game::back_to_best() {
  const std::vector<Move> best = best_moves_;
  go_to(best);
}

double Game::play_all(std::span<const Move> moves) {
  back_to_start();
  for (const Move& move : moves) {
    if (!board_.make(move)) {
      ++masked_;
      continue;
    }
    times_.push_back(time_);
    moves_.push_back(move);
  }
  evaluate();
  return time_;
}

std::uint64_t Game::below(std::uint64_t bound) { return random_() % bound; }

double Game::chance() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

Move Game::propose() {
  Move move;
  const std::uint32_t wide = board_.wide_tracks();
  const bool in_wide = wide > 0 && (wide == board_.tracks() || below(2) == 0);
  move.track = static_cast<std::uint32_t>(below(in_wide ? wide : board_.tracks()));
  do {
    move.grain = static_cast<Grain>(below(kGrainNames.size()));
  } while (!board_.has_grain(move.grain));
  move.place =
      static_cast<std::uint32_t>(below(std::max<std::uint32_t>(1, board_.places(move.track, move.grain))));
  const auto far = static_cast<std::int32_t>(below(2) == 0 ? 0 : below(kFarthest + 1));
  move.steps = (1 << far) * (below(2) == 0 ? -1 : 1);
  if (board_.crosses() && below(4) == 0) move.kind = below(2) == 0 ? MoveKind::swap : MoveKind::give;
  return move;
}

std::vector<Move> needed_moves(Board& board, std::vector<Move> moves, double start_time, double time,
                               std::int64_t evaluations) {
  const double worst = time + 0.01 * (start_time - time);
  // Leaves moves out if the other moves are as good without them.
  const auto leave_out = [&](std::span<const std::size_t> places) {
    std::vector<Move> rest;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      if (std::find(places.begin(), places.end(), i) == places.end()) rest.push_back(moves[i]);
    }
    std::size_t made = 0;
    for (const Move& move : rest) made += board.make_unproved(move) ? 1 : 0;
    --evaluations;
    const bool good = made == rest.size() && board.lawful() && !later(board.time(), worst);
    while (made-- > 0) board.take_back();
    if (good) moves = std::move(rest);
    return good;
  };
  for (std::size_t size = std::max<std::size_t>(1, moves.size() / 2);;
       size = std::max<std::size_t>(1, size / 2)) {
    bool gone = false;
    for (std::size_t begin = 0; begin < moves.size() && evaluations > 0;) {
      std::vector<std::size_t> places;
      for (std::size_t i = begin; i < std::min(begin + size, moves.size()); ++i) places.push_back(i);
      const bool left_out = leave_out(places);
      gone = gone || left_out;
      if (!left_out) begin += size;
    }
    if (evaluations <= 0 || (size == 1 && !gone)) break;
  }
  // Moves that undo each other.
  for (std::size_t i = 0; i < moves.size(); ++i) {
    for (std::size_t j = i + 1; j < moves.size() && evaluations > 0;) {
      if (leave_out(std::array{i, j})) {
        j = i + 1;
      } else {
        ++j;
      }
    }
  }
  return moves;
}

}  // namespace tritax
