// The K step of attention: its instructions, its bound, and the gain of hand-written kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/parts/levels/k_step_of_tile.hpp"
#include "model/select/game/player.hpp"
#include "model/select/game/step_board.hpp"

namespace tritax {
namespace {

struct Case {
  const char* machine;
  MatmulTile tile;  // queries, keys of a block, columns of a head
};

const Case kCases[] = {{"mi300x-8", {128, 64, 128, 4, Pipeline::overlapped}},
                       {"a100-8", {128, 64, 128, 8, Pipeline::overlapped}},
                       {"h100-4", {128, 128, 128, 8, Pipeline::overlapped}}};

Levels levels_of(const Machine& machine, const MatmulTile& tile) {
  return lower_attend(machine.gpu, machine.interpreter, DType::fp16, tile);
}

int count_of(const KStep& step, InstructionKind kind) {
  return static_cast<int>(std::count_if(step.instructions.begin(), step.instructions.end(),
                                        [&](const StepInstruction& one) { return one.kind == kind; }));
}

std::size_t find_line(const KStep& step, const std::string& name) {
  const auto found = std::find_if(step.instructions.begin(), step.instructions.end(),
                                  [&](const StepInstruction& one) { return one.name == name; });
  EXPECT_NE(found, step.instructions.end()) << name;
  return static_cast<std::size_t>(found - step.instructions.begin());
}

TEST(AttentionStep, IsALegalOrderOnEveryFeed) {
  for (const Case& one : kCases) {
    const Machine machine = find_machine(one.machine);
    const Levels levels = levels_of(machine, one.tile);
    const KStep step = k_step_of(machine.gpu, levels);
    EXPECT_EQ(count_of(step, InstructionKind::matrix),
              levels.products[0].instructions() + levels.products[1].instructions())
        << one.machine;
    EXPECT_EQ(order_problem(step, written_order(step)), "") << one.machine;
    EXPECT_EQ(order_problem(step, listed_order(step)), "") << one.machine;
  }
}

// As attend_cost.hpp counts: 4·m·n plain instructions a score and m·d to rescale, over the lanes; and m·n
// exponentials at 16 a clock and SIMD of 64 lanes, or 4 of 32.
TEST(AttentionStep, HasTheVectorWorkOfTheLawOfTheTile) {
  for (const Case& one : kCases) {
    const Machine machine = find_machine(one.machine);
    const KStep step = k_step_of(machine.gpu, levels_of(machine, one.tile));
    const StepTime time = StepBoard(step).evaluate(written_order(step));
    const double m = one.tile.m, n = one.tile.n, d = one.tile.k, simds = machine.gpu.simds_per_cu;
    const bool one_unit = machine.gpu.lanes_per_wave == 64;
    const double exponentials = m * n / 4 / simds, plain = (4 * m * n + m * d) / (one_unit ? 16 : 32) / simds;
    const double vector = time.busy[static_cast<std::size_t>(StepUnit::vector)];
    const double special = time.busy[static_cast<std::size_t>(StepUnit::special)];
    EXPECT_DOUBLE_EQ(vector, one_unit ? exponentials + plain : plain) << one.machine;
    EXPECT_DOUBLE_EQ(special, one_unit ? 0 : exponentials) << one.machine;
    EXPECT_DOUBLE_EQ(time.busy[0], 4 * m * n * d / machine.gpu.rate(DType::fp16).flop_per_clk_per_cu)
        << one.machine;
  }
}

TEST(AttentionStep, TakesNoExponentialBeforeTheMaximumOfItsRows) {
  const Machine machine = find_machine("mi300x-8");
  const KStep step = k_step_of(machine.gpu, levels_of(machine, kCases[0].tile));
  StepOrder order = written_order(step);
  const std::size_t largest = find_line(step, "largest 0,1"), first = find_line(step, "exponentials 0,0");
  std::swap(order[largest], order[first]);
  EXPECT_NE(order_problem(step, order), "");
}

// While one block's scores are weighed, the next one's are multiplied: what FlashAttention-3 does inside a
// warpgroup.
TEST(AttentionStep, WithScoresAheadHidesSoftmaxBehindProducts) {
  for (const Case& one : {kCases[0], Case{"h100-4", {64, 128, 128, 4, Pipeline::overlapped}}}) {
    const Machine machine = find_machine(one.machine);
    const Levels levels = levels_of(machine, one.tile);
    KStepOptions options;
    options.scores_ahead = true;
    const KStep plain = k_step_of(machine.gpu, levels);
    const KStep ahead = k_step_of(machine.gpu, levels, options);
    const double cycles = StepBoard(ahead).cycles(listed_order(ahead));
    EXPECT_LT(cycles, StepBoard(plain).cycles(listed_order(plain))) << one.machine;
    const StepTime time = StepBoard(ahead).evaluate(listed_order(ahead));
    EXPECT_GE(cycles, *std::max_element(time.busy.begin(), time.busy.end())) << one.machine;
  }
}

TEST(AttentionStep, NeedsRegistersForScoresAhead) {
  const Machine machine = find_machine("h100-4");
  KStepOptions options;
  options.scores_ahead = true;
  const Levels levels = levels_of(machine, {128, 64, 128, 4, Pipeline::overlapped});
  EXPECT_THROW(k_step_of(machine.gpu, levels, options), UserError);
}

TEST(AttentionStep, IsABoardToPlayOn) {
  const Machine machine = find_machine("mi300x-8");
  const KStep step = k_step_of(machine.gpu, levels_of(machine, kCases[0].tile));
  StepOrderBoard board(step);
  Game game(board, {.moves = 60, .seed = 2});
  find_player("greedy", "test").play(game);
  EXPECT_TRUE(board.lawful());
  EXPECT_LE(game.best_time(), game.start_time());
}

}  // namespace
}  // namespace tritax
