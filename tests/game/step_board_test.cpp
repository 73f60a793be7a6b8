// The board of a K step: moves keep its orders legal, and the found order takes no longer.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/machine/machine.hpp"
#include "model/select/game/player.hpp"
#include "model/select/game/step_board.hpp"

namespace tritax {
namespace {

StepInstruction instruction(InstructionKind kind, StepUnit unit, const char* name, std::int32_t busy,
                            std::int32_t latency) {
  StepInstruction one;
  one.kind = kind;
  one.unit = unit;
  one.name = name;
  one.busy = busy;
  one.latency = latency;
  one.movable = unit != StepUnit::matrix;
  return one;
}

// Two pieces, each read and multiplied in turn, and a read that nobody waits for soon. With as many registers
// as that, reading both first hides the second read behind the first product.
KStep two_pieces() {
  KStep step;
  step.title = "two pieces";
  step.instructions = {instruction(InstructionKind::lds_read, StepUnit::lds, "read 0", 4, 60),
                       instruction(InstructionKind::matrix, StepUnit::matrix, "multiply 0", 32, 32),
                       instruction(InstructionKind::lds_read, StepUnit::lds, "read 1", 4, 60),
                       instruction(InstructionKind::matrix, StepUnit::matrix, "multiply 1", 32, 32)};
  const auto needs = [](std::int32_t from, std::int32_t to, std::int32_t turns, std::int32_t cycles) {
    StepDependence dependence;
    dependence.from = from;
    dependence.to = to;
    dependence.turns = turns;
    dependence.cycles = cycles;
    return dependence;
  };
  step.dependences = {needs(0, 1, 0, 60), needs(2, 3, 0, 60), needs(1, 0, 1, 1), needs(3, 2, 1, 1)};
  return step;
}

TEST(StepOrderBoard, MovesWhatLoadsAndKeepsDependences) {
  const KStep step = two_pieces();
  StepOrderBoard board(step);
  const StepOrder start = board.order();
  Game game(board, {.moves = 200, .seed = 4});
  while (!game.over()) {
    game.try_move(game.propose());
    ASSERT_TRUE(board.lawful()) << order_problem(step, board.order());
    if (game.moves().size() > kMovesOfEpisode) game.back_to_start();
  }
  game.back_to_start();
  EXPECT_EQ(board.order(), start);
  const auto multiply = std::find(start.begin(), start.end(), 1) - start.begin();
  EXPECT_FALSE(board.make({0, static_cast<std::uint32_t>(multiply), Grain::operation, 1}));
  EXPECT_FALSE(board.make({0, 0, Grain::tile, 1}));
  EXPECT_FALSE(board.make({0, 9, Grain::operation, 1}));
}

TEST(StepOrderBoard, IsPlayedToTheBestOfAllLegalOrders) {
  const KStep step = two_pieces();
  double least = 1e9;
  StepOrder order = written_order(step);
  do {
    if (order_problem(step, order).empty()) least = std::min(least, StepBoard(step).cycles(order));
  } while (std::next_permutation(order.begin(), order.end()));
  for (const Player& player : players()) {
    StepOrderBoard board(step);
    Game game(board, {.moves = 200, .seed = 1});
    player.play(game);
    EXPECT_EQ(game.best_time(), least) << player.name;
  }
}

}  // namespace
}  // namespace tritax
