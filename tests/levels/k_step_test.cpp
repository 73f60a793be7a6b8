#include "model/parts/levels/k_step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/parts/levels/k_step_of_tile.hpp"

namespace tritax {
namespace {

StepInstruction instruction(InstructionKind kind, StepUnit unit, std::string name, std::int32_t issue,
                            std::int32_t busy) {
  StepInstruction made;
  made.kind = kind;
  made.unit = unit;
  made.name = std::move(name);
  made.issue = issue;
  made.busy = busy;
  made.movable = kind != InstructionKind::matrix && kind != InstructionKind::barrier;
  return made;
}

// A load of 100 cycles into one register, and a matrix instruction of 32 that needs it.
KStep load_and_multiply(std::int32_t registers) {
  KStep step;
  step.instructions = {instruction(InstructionKind::load, StepUnit::memory, "load", 1, 4),
                       instruction(InstructionKind::matrix, StepUnit::matrix, "multiply", 1, 32)};
  step.dependences = {{0, 1, registers - 1, 100}, {1, 0, 1, 1}};
  return step;
}

TEST(KStep, WithOneRegisterWaitsForItsLoad) {
  const KStep step = load_and_multiply(1);
  const StepTime time = StepBoard(step).evaluate(written_order(step));
  EXPECT_DOUBLE_EQ(time.cycles, 101);
  EXPECT_EQ(time.bound, "load -> multiply");
}

// The load of turn t is for turn t + 1: two turns share the wait of 101 cycles.
TEST(KStep, WithTwoRegistersWaitsHalfAsLong) {
  KStep step = load_and_multiply(2);
  step.dependences[1].turns = 1;
  EXPECT_DOUBLE_EQ(StepBoard(step).cycles(written_order(step)), 50.5);
}

TEST(KStep, WithEnoughRegistersIsBoundByTheMatrixCore) {
  const KStep step = load_and_multiply(5);
  const StepTime time = StepBoard(step).evaluate(written_order(step));
  EXPECT_DOUBLE_EQ(time.cycles, 32);
  EXPECT_EQ(time.bound, "the matrix core");
  EXPECT_EQ(time.critical, (StepOrder{1}));
}

TEST(KStep, WavesShareUnitsInTurn) {
  KStep step = load_and_multiply(1);
  step.waves_per_simd = 3;
  EXPECT_DOUBLE_EQ(StepBoard(step).cycles(written_order(step)), 101);  // 3 · 32 fit into the wait
  step.waves_per_simd = 4;
  EXPECT_DOUBLE_EQ(StepBoard(step).cycles(written_order(step)), 128);
}

// Two loads of 10 cycles each at the memory path, then a matrix instruction that needs neither. Without a
// queue it issues behind the second load, with one at once.
TEST(KStep, AQueueLetsAWaveGoOn) {
  KStep step;
  step.instructions = {instruction(InstructionKind::load, StepUnit::memory, "a", 1, 10),
                       instruction(InstructionKind::load, StepUnit::memory, "b", 1, 10),
                       instruction(InstructionKind::matrix, StepUnit::matrix, "m", 20, 20)};
  const StepBoard board(step);
  EXPECT_DOUBLE_EQ(board.cycles({0, 1, 2}),
                   10 + 1 + 20);  // a, then b 10 later, m 1 later, next turn 20 later
  step.queue[static_cast<std::size_t>(StepUnit::memory)] = 2;
  EXPECT_DOUBLE_EQ(board.cycles({0, 1, 2}), 22);
  EXPECT_EQ(board.evaluate({0, 1, 2}).bound, "issue");
}

TEST(KStep, ABarrierIsCommonToTheWaves) {
  KStep step;
  step.instructions = {instruction(InstructionKind::lds_write, StepUnit::lds, "write", 1, 8),
                       instruction(InstructionKind::barrier, StepUnit::none, "barrier", 1, 0)};
  step.dependences = {{0, 1, 0, 8}, {1, 0, 1, 1}};
  step.waves_per_simd = 2;
  // The second wave's write begins 8 behind the first's and takes 8; both go on 1 later.
  EXPECT_DOUBLE_EQ(StepBoard(step).cycles({0, 1}), 17);
}

TEST(KStep, SwapsKeepDependencesBarriersAndWindows) {
  KStep step;
  step.instructions = {instruction(InstructionKind::lds_read, StepUnit::lds, "read", 1, 1),
                       instruction(InstructionKind::matrix, StepUnit::matrix, "use", 1, 1),
                       instruction(InstructionKind::matrix, StepUnit::matrix, "other", 3, 1),
                       instruction(InstructionKind::matrix, StepUnit::matrix, "late", 3, 1),
                       instruction(InstructionKind::barrier, StepUnit::none, "barrier", 1, 0)};
  step.dependences = {{0, 1, 0, 10}, {0, 3, 0, 5, StepWait::window}};
  const StepBoard board(step);
  const StepOrder order = written_order(step);
  EXPECT_EQ(order_problem(step, order), "");
  EXPECT_THAT(board.swap_problem(order, 0), testing::HasSubstr("use needs read"));
  EXPECT_TRUE(board.may_swap(order, 1));
  EXPECT_THAT(board.swap_problem(order, 2), testing::HasSubstr("needs 5 cycles"));
  EXPECT_TRUE(board.may_swap(order, 3));
  step.barriers_are_walls = true;
  EXPECT_THAT(board.swap_problem(order, 3), testing::HasSubstr("barrier"));
  EXPECT_THAT(order_problem(step, {0, 1, 2, 4, 3}), testing::HasSubstr("barrier"));
  EXPECT_THAT(order_problem(step, {1, 0, 2, 3, 4}), testing::HasSubstr("use needs read"));
  EXPECT_THAT(order_problem(step, {0, 0, 2, 3, 4}), testing::HasSubstr("each of the 5"));
}

// A window over the end of the loop: 6 cycles between the use of turn t and the read of turn t + 1.
TEST(KStep, WindowsReachIntoTheNextTurn) {
  KStep step;
  step.instructions = {instruction(InstructionKind::lds_read, StepUnit::lds, "read", 1, 1),
                       instruction(InstructionKind::matrix, StepUnit::matrix, "other", 5, 1),
                       instruction(InstructionKind::matrix, StepUnit::matrix, "use", 1, 1)};
  step.dependences = {{2, 0, 1, 6, StepWait::window}, {0, 2, 0, 1}};
  const StepBoard board(step);
  EXPECT_EQ(order_problem(step, {0, 2, 1}), "");
  EXPECT_THAT(order_problem(step, {0, 1, 2}), testing::HasSubstr("needs 6 cycles"));
  EXPECT_EQ(order_problem(step, {1, 0, 2}), "");  // 1 of the use and 5 of the other
  EXPECT_FALSE(board.may_swap({0, 2, 1}, 1));
}

KStep random_step(bool windows) {
  KStep step;
  const int count = *rc::gen::inRange(2, 12);
  for (int i = 0; i < count; ++i) {
    const auto unit = *rc::gen::element(StepUnit::matrix, StepUnit::lds, StepUnit::memory, StepUnit::none);
    step.instructions.push_back(instruction(
        unit == StepUnit::none ? InstructionKind::barrier : InstructionKind::lds_read, unit,
        std::to_string(i), *rc::gen::inRange(1, 5), unit == StepUnit::none ? 0 : *rc::gen::inRange(1, 40)));
  }
  const int dependences = *rc::gen::inRange(0, 2 * count);
  for (int d = 0; d < dependences; ++d) {
    const int a = *rc::gen::inRange(0, count), b = *rc::gen::inRange(0, count);
    const int turns = a < b ? *rc::gen::inRange(0, 3) : *rc::gen::inRange(1, 4);
    const bool window = windows && *rc::gen::inRange(0, 3) == 0;
    step.dependences.push_back({a, b, turns, *rc::gen::inRange(0, window ? 8 : 200),
                                window ? StepWait::window : StepWait::hardware});
  }
  step.waves_per_simd = *rc::gen::inRange(1, 4);
  for (std::size_t unit = 0; unit < 3; ++unit) step.queue[unit] = *rc::gen::inRange(0, 3);
  step.barriers_are_walls = *rc::gen::arbitrary<bool>();
  return step;
}

// Runs the inequalities of k_step.hpp turn by turn, by themselves: what the steady state tends to.
double simulated_cycles(const KStep& step, const StepOrder& order, int turns) {
  const int waves = step.waves_per_simd;
  const auto count = order.size();
  using Times = std::vector<std::vector<std::vector<double>>>;  // [turn][instruction][wave]
  Times issue(static_cast<std::size_t>(turns),
              std::vector(count, std::vector(static_cast<std::size_t>(waves), 0.0)));
  Times serve = issue;
  std::array<std::vector<std::pair<double, int>>, kStepUnits> served;  // by unit: begin, busy
  double middle = 0;
  for (std::size_t t = 0; t < static_cast<std::size_t>(turns); ++t) {
    for (std::size_t place = 0; place < count; ++place) {
      const auto index = static_cast<std::size_t>(order[place]);
      const StepInstruction& one = step.instructions[index];
      double common = 0;
      for (int pass = 0; pass < 2; ++pass) {
        for (std::size_t wave = 0; wave < static_cast<std::size_t>(waves); ++wave) {
          double at = 0;
          if (place > 0 || t > 0) {
            const auto before = static_cast<std::size_t>(order[place > 0 ? place - 1 : count - 1]);
            at = issue[place > 0 ? t : t - 1][before][wave] + step.instructions[before].issue;
          }
          for (const StepDependence& need : step.dependences) {
            if (static_cast<std::size_t>(need.to) != index || static_cast<int>(t) < need.turns) continue;
            at = std::max(
                at,
                serve[t - static_cast<std::size_t>(need.turns)][static_cast<std::size_t>(need.from)][wave] +
                    need.cycles);
          }
          if (one.kind == InstructionKind::barrier) {
            common = std::max(common, at);
            if (pass == 1) issue[t][index][wave] = serve[t][index][wave] = common;
            continue;
          }
          if (pass == 1) continue;
          auto& unit = served[static_cast<std::size_t>(one.unit)];
          const auto room = static_cast<std::size_t>(step.queue[static_cast<std::size_t>(one.unit)]);
          if (room > 0 && unit.size() >= room) at = std::max(at, unit[unit.size() - room].first);
          double begin = at;
          if (!unit.empty()) begin = std::max(begin, unit.back().first + unit.back().second);
          issue[t][index][wave] = room > 0 ? at : begin;
          serve[t][index][wave] = begin;
          unit.push_back({begin, one.busy});
        }
      }
    }
    if (t + 1 == static_cast<std::size_t>(turns) / 2)
      middle = issue[t][static_cast<std::size_t>(order[0])][0];
  }
  const double end = issue.back()[static_cast<std::size_t>(order[0])][0];
  return (end - middle) / (turns - turns / 2);
}

RC_GTEST_PROP(KStep, SteadyStateIsWhatTheLoopTendsTo, ()) {
  const KStep step = random_step(false);
  const StepOrder order = listed_order(step);
  RC_ASSERT(order_problem(step, order).empty());
  constexpr int kTurns = 1200;
  const double cycles = StepBoard(step).cycles(order);
  // What does not repeat from turn to turn is at most all there is, spread over the turns of the second half.
  double all = 0;
  for (const StepInstruction& one : step.instructions) all += one.issue + one.busy * step.waves_per_simd;
  for (const StepDependence& one : step.dependences) all += one.cycles;
  RC_ASSERT(std::abs(simulated_cycles(step, order, kTurns) - cycles) <= 3 * all / (kTurns / 2.0));
}

// Whatever swaps lead to is a legal order; and a swap is refused only if it leads to one that is not.
RC_GTEST_PROP(KStep, ALegalSwapIsOneThatLeavesTheOrderLegal, ()) {
  const KStep step = random_step(true);
  StepOrder order = listed_order(step);
  RC_PRE(order_problem(step, order).empty());  // windows of a written order may be broken
  const StepBoard board(step);
  for (int move = 0; move < 40; ++move) {
    const int place = *rc::gen::inRange<int>(0, static_cast<int>(order.size()) - 1);
    StepOrder next = order;
    std::swap(next[static_cast<std::size_t>(place)], next[static_cast<std::size_t>(place) + 1]);
    RC_ASSERT(board.may_swap(order, place) == order_problem(step, next).empty());
    if (board.may_swap(order, place)) order = next;
  }
}

RC_GTEST_PROP(KStep, NoOrderIsFasterThanItsBusiestUnit, ()) {
  const KStep step = random_step(false);
  const StepTime time = StepBoard(step).evaluate(listed_order(step));
  RC_ASSERT(time.cycles >= *std::max_element(time.busy.begin(), time.busy.end()));
  RC_ASSERT(!time.bound.empty());
  RC_ASSERT(!time.critical.empty());
  RC_ASSERT(StepBoard(step).cycles(listed_order(step)) == time.cycles);
}

Levels lowered_for(const std::string& name, DType dtype, const MatmulTile& tile) {
  const Machine machine = find_machine(name);
  return lower_matmul(machine.gpu, machine.interpreter, dtype, tile);
}

struct Lowered {
  std::string machine;
  MatmulTile tile;
};

const std::vector<Lowered>& lowered_tiles() {
  static const std::vector<Lowered> tiles{{"mi300x-8", {128, 128, 32, 4, Pipeline::serial}},
                                          {"mi300x-8", {128, 128, 32, 4, Pipeline::overlapped}},
                                          {"mi355x-8", {128, 128, 64, 8, Pipeline::overlapped}},
                                          {"mi250x-4", {64, 64, 32, 4, Pipeline::serial}},
                                          {"a100-8", {128, 128, 32, 4, Pipeline::overlapped}},
                                          {"h200-8", {128, 256, 64, 8, Pipeline::overlapped}},
                                          {"pvc-1550", {256, 256, 32, 32, Pipeline::overlapped}}};
  return tiles;
}

TEST(KStepOfTile, HasTheInstructionsOfItsLevels) {
  for (const auto& [name, tile] : lowered_tiles()) {
    const Levels levels = lowered_for(name, DType::fp16, tile);
    const KStep step = k_step_of(find_machine(name).gpu, levels);
    const auto count = [&](InstructionKind kind) {
      return std::count_if(step.instructions.begin(), step.instructions.end(),
                           [&](const StepInstruction& one) { return one.kind == kind; });
    };
    EXPECT_EQ(count(InstructionKind::matrix), levels.products.front().instructions()) << name;
    EXPECT_EQ(count(InstructionKind::lds_write), levels.moves.writes_a + levels.moves.writes_b) << name;
    if (levels.feed != Feed::through_cache) {
      EXPECT_EQ(count(InstructionKind::lds_read), levels.moves.reads_a + levels.moves.reads_b) << name;
    }
    EXPECT_EQ(order_problem(step, written_order(step)), "") << name;
    const StepOrder listed = listed_order(step);
    EXPECT_EQ(order_problem(step, listed), "") << name;
    const StepBoard board(step);
    const double cycles = board.cycles(listed);
    EXPECT_LE(cycles, board.cycles(written_order(step))) << name;
    EXPECT_GE(cycles, board.evaluate(listed).busy[0]) << name;
  }
}

// The matrix core of a wave's step: as many cycles as its products take.
TEST(KStepOfTile, KeepsTheMatrixCoreBusyForItsProducts) {
  const Levels levels = lowered_for("mi300x-8", DType::fp16, {256, 256, 64, 4, Pipeline::serial});
  const KStep step = k_step_of(find_machine("mi300x-8").gpu, levels);
  const StepTime time = StepBoard(step).evaluate(listed_order(step));
  EXPECT_EQ(time.busy[static_cast<std::size_t>(StepUnit::matrix)], 128 * 32);
  EXPECT_EQ(step.flops, 2.0 * 256 * 256 * 64);
}

// Many random legal swaps never lose a dependence; and machine code's rules hold too.
TEST(KStepOfTile, StaysLegalUnderRandomSwaps) {
  for (const bool machine_code : {false, true}) {
    const Levels levels = lowered_for("a100-8", DType::fp16, {64, 64, 32, 4, Pipeline::overlapped});
    const KStep step = k_step_of(find_machine("a100-8").gpu, levels,
                                 {.memory_latency_ns = 0, .as_machine_code = machine_code});
    StepOrder order = listed_order(step);
    ASSERT_EQ(order_problem(step, order), "");
    const StepBoard board(step);
    std::uint32_t random = 1;
    for (int move = 0; move < 2000; ++move) {
      random = random * 1664525U + 1013904223U;
      const auto place = static_cast<std::int32_t>((random >> 8) % (order.size() - 1));
      if (!board.may_swap(order, place)) continue;
      std::swap(order[static_cast<std::size_t>(place)], order[static_cast<std::size_t>(place) + 1]);
    }
    EXPECT_EQ(order_problem(step, order), "");
  }
}

// What the first matrix instructions of a turn wait for was read in the turn before.
TEST(KStepOfTile, ReadsAheadHideTheLatencyOfLds) {
  for (const auto& [name, tile] : lowered_tiles()) {
    const Gpu gpu = find_machine(name).gpu;
    const Levels levels = lowered_for(name, DType::fp16, tile);
    const KStep plain = k_step_of(gpu, levels);
    KStepOptions options;
    options.reads_ahead = true;
    const KStep ahead = k_step_of(gpu, levels, options);
    EXPECT_EQ(ahead.instructions.size(), plain.instructions.size()) << name;
    EXPECT_EQ(order_problem(ahead, written_order(ahead)), "") << name;
    const double cycles = StepBoard(ahead).cycles(listed_order(ahead));
    // Of several waves of a SIMD one hides the latency of another, and the list schedule knows neither.
    if (plain.waves_per_simd == 1) {
      EXPECT_LE(cycles, StepBoard(plain).cycles(listed_order(plain))) << name;
    }
    EXPECT_GE(cycles, StepBoard(plain).evaluate(listed_order(plain)).busy[0]) << name;
  }
}

}  // namespace
}  // namespace tritax
