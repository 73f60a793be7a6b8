// Players on a board whose best position is known: a row of numbers to sort.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/select/game/player.hpp"

namespace tritax {
namespace {

// One track of numbers. What a position takes is how far the numbers are from their places; two neighbours
// whose sum is `forbidden` may not change places.
class SortedRow final : public Board {
 public:
  SortedRow(std::vector<int> row, int forbidden) : row_(std::move(row)), forbidden_(forbidden) {}
  std::uint32_t tracks() const override { return 1; }
  std::string track_name(std::uint32_t) const override { return "row"; }
  std::uint32_t wide_tracks() const override { return 1; }
  bool has_grain(Grain grain) const override { return grain == Grain::operation; }
  std::uint32_t places(std::uint32_t, Grain) const override {
    return static_cast<std::uint32_t>(row_.size());
  }
  bool make_unproved(const Move& move) override {
    const std::vector<int> before = row_;
    const std::int64_t target = std::int64_t{move.place} + move.steps;
    if (move.steps == 0 || target < 0 || target >= static_cast<std::int64_t>(row_.size())) return false;
    const int way = move.steps > 0 ? 1 : -1;
    for (std::int64_t at = move.place; at != target; at += way) {
      int& one = row_[static_cast<std::size_t>(at)];
      int& other = row_[static_cast<std::size_t>(at + way)];
      if (one + other == forbidden_) {
        row_ = before;
        return false;
      }
      std::swap(one, other);
    }
    done_.push_back(before);
    return true;
  }
  bool make(const Move& move) override { return make_unproved(move); }
  bool lawful() override { return true; }
  void take_back() override {
    row_ = done_.back();
    done_.pop_back();
  }
  double time() override {
    double time = 10;
    for (std::size_t i = 0; i < row_.size(); ++i) time += std::abs(row_[i] - static_cast<double>(i));
    return time;
  }
  std::string describe(const Move&) const override { return "a number"; }
  const std::vector<int>& row() const { return row_; }

 private:
  std::vector<int> row_;
  std::vector<std::vector<int>> done_;
  int forbidden_;
};

TEST(Players, AllGainAndLeaveTheWayToTheBest) {
  for (const Player& player : players()) {
    SortedRow board({5, 4, 3, 2, 1, 0}, -1);
    Game game(board, {.moves = 2000, .seed = 5});
    EXPECT_EQ(game.start_time(), 28);
    player.play(game);
    EXPECT_LT(game.best_time(), 20) << player.name;
    const std::vector<Move> best = game.best_moves();
    const double time = game.best_time();
    game.back_to_start();
    EXPECT_EQ(board.row(), (std::vector<int>{5, 4, 3, 2, 1, 0})) << player.name;
    EXPECT_EQ(game.play_all(best), time) << player.name;
  }
}

TEST(Players, AnnealingSortsTheRow) {
  SortedRow board({3, 0, 4, 1, 5, 2}, -1);
  Game game(board, {.moves = 3000, .seed = 1});
  find_player("anneal", "test").play(game);
  EXPECT_EQ(game.best_time(), 10);
}

TEST(Players, PlayTheSameGameWithTheSameSeed) {
  for (const Player& player : players()) {
    std::vector<std::vector<Move>> games;
    for (int i = 0; i < 2; ++i) {
      SortedRow board({5, 4, 3, 2, 1, 0}, 5);
      Game game(board, {.moves = 300, .seed = 9});
      player.play(game);
      games.push_back(game.best_moves());
      EXPECT_LE(game.evaluated(), 300 + 1) << player.name;
    }
    EXPECT_EQ(games[0], games[1]) << player.name;
  }
}

TEST(Players, EndWhereNothingMayMove) {
  for (const Player& player : players()) {
    SortedRow board({1, 0}, 1);
    Game game(board, {.moves = 10, .seed = 1});
    player.play(game);
    EXPECT_EQ(game.best_time(), game.start_time()) << player.name;
  }
}

TEST(Players, AreFoundByName) {
  EXPECT_EQ(find_player("greedy", "--player").name, "greedy");
  EXPECT_THROW(find_player("greedi", "--player"), UserError);
}

RC_GTEST_PROP(Game, TakesBackWhatItMade, ()) {
  std::vector<int> row(7);
  std::iota(row.begin(), row.end(), 0);
  SortedRow board(row, 6);
  Game game(board, {.moves = 40, .seed = *rc::gen::arbitrary<std::uint64_t>()});
  while (!game.over()) {
    const std::vector<int> before = board.row();
    const double time = game.time();
    if (!game.try_move(game.propose())) {
      RC_ASSERT(board.row() == before);
    } else if (game.below(2) == 0) {
      game.take_back();
      RC_ASSERT(board.row() == before);
      RC_ASSERT(game.time() == time);
    }
  }
  game.back_to_best();
  RC_ASSERT(board.time() == game.best_time());
}

TEST(NeededMoves, DropWhatDoesNotCount) {
  SortedRow board({1, 0, 2, 3, 4}, -1);
  const std::vector<Move> moves{
      {0, 3, Grain::operation, 1}, {0, 0, Grain::operation, 1}, {0, 3, Grain::operation, 1}};
  EXPECT_EQ(needed_moves(board, moves, 12, 10, 100), (std::vector<Move>{moves[1]}));
  EXPECT_EQ(board.row(), (std::vector<int>{1, 0, 2, 3, 4}));
}

}  // namespace
}  // namespace tritax
