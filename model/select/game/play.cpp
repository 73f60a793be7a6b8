#include "model/select/game/play.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tritax {

namespace {

// Loss that a player accepts, as a share of the time at the start: first and last value.
constexpr double kFirstLoss = 5e-4;
constexpr double kLastLoss = 1e-5;

constexpr int kSample = 16;  // a greedy player takes the best of this number of moves

constexpr std::size_t kLists = 16;  // per generation of an evolution
constexpr std::size_t kKept = 2;    // the best lists stay unchanged

struct Lived {
  std::vector<Move> moves;
  double time = 0;
};

const Lived& better_of_two(Game& game, const std::vector<Lived>& all) {
  const Lived& one = all[game.below(all.size())];
  const Lived& other = all[game.below(all.size())];
  return one.time <= other.time ? one : other;
}

// The beginning of one list and the end of another, with one change.
std::vector<Move> child_of(Game& game, const Lived& one, const Lived& other) {
  std::vector<Move> moves(one.moves.begin(),
                          one.moves.begin() + static_cast<std::ptrdiff_t>(game.below(one.moves.size() + 1)));
  moves.insert(moves.end(),
               other.moves.begin() + static_cast<std::ptrdiff_t>(game.below(other.moves.size() + 1)),
               other.moves.end());
  const std::uint64_t change = game.below(4);
  const auto at = static_cast<std::ptrdiff_t>(game.below(moves.size() + 1));
  if (change == 0 && at < static_cast<std::ptrdiff_t>(moves.size())) {
    moves.erase(moves.begin() + at);
  } else if (change == 1 && at < static_cast<std::ptrdiff_t>(moves.size())) {
    moves[static_cast<std::size_t>(at)] = game.propose();
  } else {
    moves.insert(moves.begin() + at, game.propose());
  }
  if (moves.size() > kMovesOfEpisode) moves.resize(kMovesOfEpisode);
  return moves;
}

}  // namespace

void play_at_random(Game& game) {
  while (!game.over()) {
    game.back_to_start();
    for (int made = 0; made < kMovesOfEpisode && !game.over();) {
      if (game.try_move(game.propose())) ++made;
    }
  }
}

void play_greedily(Game& game) {
  while (!game.over()) {
    const double before = game.time();
    double best = before;
    std::optional<Move> gains;
    for (int tried = 0; tried < kSample && !game.over();) {
      const Move move = game.propose();
      const std::optional<double> after = game.try_move(move);
      if (!after) continue;
      ++tried;
      if (*after < best) {
        best = *after;
        gains = move;
      }
      game.take_back();
    }
    if (gains && !game.over()) game.try_move(*gains);
  }
}

// An episode ends after 32 moves without gain; the next episode begins at the best position.
void play_annealing(Game& game) {
  int since_best = 0;
  double best = game.best_time();
  while (!game.over()) {
    const double before = game.time();
    const std::optional<double> after = game.try_move(game.propose());
    if (!after) continue;
    const double loss = kFirstLoss * std::pow(kLastLoss / kFirstLoss, game.progress());
    const double allowed = -game.start_time() * loss * std::log(1 - game.chance());
    if (*after > before + allowed) {
      game.take_back();
      continue;
    }
    ++since_best;
    if (game.best_time() < best || game.time() <= best) {
      best = game.best_time();
      since_best = 0;
    }
    if (since_best >= kMovesOfEpisode) {
      game.back_to_best();
      since_best = 0;
    }
  }
}

void play_evolution(Game& game) {
  std::vector<Lived> all(kLists);
  for (Lived& one : all) {
    if (game.over()) return;
    const std::vector<Move> moves{game.propose(), game.propose(), game.propose(), game.propose()};
    one.time = game.play_all(moves);
    one.moves = game.moves();
  }
  while (!game.over()) {
    std::stable_sort(all.begin(), all.end(), [](const Lived& a, const Lived& b) { return a.time < b.time; });
    std::vector<Lived> next(all.begin(), all.begin() + kKept);
    while (next.size() < kLists && !game.over()) {
      const Lived& one = better_of_two(game, all);
      const Lived& other = better_of_two(game, all);
      Lived child;
      child.time = game.play_all(child_of(game, one, other));
      child.moves = game.moves();
      next.push_back(std::move(child));
    }
    all = std::move(next);
  }
}

}  // namespace tritax
