// The board of tile schedules: what the mask lets through does what the start does, on small matrices; what
// would not is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/error.hpp"
#include "model/schedule/builder.hpp"
#include "model/schedule/check.hpp"
#include "model/select/game/player.hpp"
#include "model/select/game/tile_board.hpp"
#include "model/workloads/registry.hpp"
#include "sim/functional.hpp"

namespace tritax {
namespace {

Machine few_units() {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;
  machine.gpu.cus_per_xcd = 4;
  return machine;
}

// Of a workload with a GEMM, with ragged edges.
Problem ragged_problem(const Workload& workload) {
  Problem problem = problem_of(workload);
  problem.values.give("m", 90);
  problem.values.give("n", 104);
  problem.values.give("k", 72);
  problem.values.give("gpus", 3);
  return problem;
}

Values small_tiles(const Workload& workload) {
  Values knobs(workload.knobs);
  knobs.give("tile_m", 32);
  knobs.give("tile_n", 16);
  knobs.give("tile_k", 16);
  knobs.give("waves", 4);
  return knobs;
}

void expect_right(const Schedule& schedule, const Machine& machine, const std::string& what) {
  EXPECT_TRUE(check_schedule(schedule).empty()) << what;
  EXPECT_TRUE(check_schedule_on(schedule, machine).empty()) << what;
  const FunctionalResult result = execute_functionally(schedule, machine, 7);
  EXPECT_TRUE(result.stale_reads.empty()) << what << ": " << result.stale_reads.front();
  EXPECT_LT(result.max_relative_error, 1e-6) << what;
}

class MovedPatterns : public testing::TestWithParam<std::string_view> {};

TEST_P(MovedPatterns, ComputeWhatTheyDidWhateverTheMaskLetsThrough) {
  const Workload& workload = find_workload(GetParam(), "test");
  const Machine machine = few_units();
  const Problem problem = ragged_problem(workload);
  std::int64_t made = 0;
  for (const Pattern& pattern : workload.patterns) {
    if (pattern.vendor) continue;
    const Values knobs = resolved_knobs(problem, machine, small_tiles(workload));
    const Schedule start = build_schedule(pattern, problem, machine, knobs);
    if (!check_schedule_on(start, machine).empty()) continue;  // needs more compute units
    TileBoard board(start, machine, [](const Schedule&) { return 1.0; });
    Game game(board, {.moves = 25, .seed = 3});
    while (!game.over()) game.try_move(game.propose());
    made += game.evaluated();
    EXPECT_TRUE(board.lawful()) << pattern.name;
    expect_right(board.schedule(), machine, std::string(pattern.name));
    game.back_to_start();
    EXPECT_TRUE(std::is_sorted(board.start_of().begin(), board.start_of().end())) << pattern.name;
  }
  EXPECT_GT(made, 50);
}

INSTANTIATE_TEST_SUITE_P(OfWorkloads, MovedPatterns,
                         testing::Values("gemm-all-scatter", "all-gather-gemm", "gemm-reduce-scatter",
                                         "gemm-all-reduce", "gemm-all-to-all"),
                         [](const auto& of) {
                           std::string name(of.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// One workgroup on GPU 0 that sends two tiles to GPU 1, each with a signal, and one there that waits for both
// and adds the tiles up.
Schedule two_tiles() {
  ScheduleBuilder builder("two tiles", 2);
  const std::int16_t in = builder.buffer({"in", DType::fp32, 32, 16, 16, 16});
  const std::int16_t there = builder.buffer({"there", DType::fp32, 32, 16, 16, 16});
  const std::int16_t sum = builder.buffer({"sum", DType::fp32, 16, 16, 16, 16});
  const std::int16_t arrived = builder.flags("arrived", 2);
  builder.input(builder.whole(in));
  Kernel send;
  send.name = "send";
  const std::int32_t sender = builder.kernel(send);
  builder.workgroup(sender);
  for (std::int32_t t = 0; t < 2; ++t) {
    builder.copy(there, {16 * t, 0, 16, 16}, 1, in, 16 * t, 0, 0);
    builder.signal(arrived, t, 1, 1, Scope::system, LockProtocol::load_store);
  }
  Kernel add;
  add.name = "add";
  add.rank = 1;
  const std::int32_t adder = builder.kernel(add);
  builder.workgroup(adder);
  for (std::int32_t t = 0; t < 2; ++t) {
    builder.wait(arrived, t, 1, Scope::system, LockProtocol::load_store);
    if (t == 0) builder.load(there, {0, 0, 16, 16}, 1);
    if (t == 1) builder.reduce(there, {16, 0, 16, 16}, 1);
  }
  builder.store(sum, {0, 0, 16, 16}, 1);
  for (int rank = 0; rank < 2; ++rank) {
    builder.launch(rank, rank == 0 ? sender : adder);
    builder.host(rank, HostOpKind::device_synchronize);
  }
  return builder.finish();
}

class TwoTiles : public testing::Test {
 protected:
  Move move(std::string_view track, std::uint32_t place, Grain grain, std::int32_t steps) const {
    for (std::uint32_t t = 0; t < board.tracks(); ++t) {
      if (board.track_name(t) == track) return {t, place, grain, steps};
    }
    ADD_FAILURE() << "no track " << track;
    return {};
  }
  const Machine machine = few_units();
  TileBoard board{two_tiles(), machine, [](const Schedule&) { return 1.0; }};
};

TEST_F(TwoTiles, MaySendInTheOtherOrder) {
  EXPECT_EQ(board.places(0, Grain::operation), 4U);
  EXPECT_EQ(board.places(0, Grain::tile), 2U);
  EXPECT_TRUE(board.make(move("all of send", 0, Grain::tile, 1)));
  EXPECT_EQ(board.start_of(), (std::vector<std::uint32_t>{2, 3, 0, 1, 4, 5, 6, 7, 8}));
  board.take_back();
  EXPECT_TRUE(board.make(move("all of send", 1, Grain::step, -1)));
  EXPECT_TRUE(board.lawful());
}

TEST_F(TwoTiles, MoveInEveryTileWhereTheyMay) {
  // Each tile is a copy and its signal; neither may pass the other, in any of them.
  const Move move_copy = move("every tile of send", 0, Grain::operation, 1);
  EXPECT_EQ(board.places(move_copy.track, Grain::operation), 2U);
  EXPECT_EQ(board.places(move_copy.track, Grain::tile), 1U);
  EXPECT_FALSE(board.make(move_copy));
}

TEST_F(TwoTiles, NeverSignalBeforeWhatTheSignalIsFor) {
  EXPECT_FALSE(board.make(move("all of send", 1, Grain::operation, -1)));
  EXPECT_TRUE(board.make(move("all of send", 1, Grain::operation, 1)));   // later, behind the second copy,
  EXPECT_TRUE(board.make(move("all of send", 2, Grain::operation, -1)));  // and back
}

TEST_F(TwoTiles, NeverReadBeforeTheWait) {
  EXPECT_FALSE(board.make(move("all of add", 0, Grain::operation, 1)));  // the law's to say
  EXPECT_EQ(board.refused_by_law(), 1);
  EXPECT_TRUE(board.make(move("all of add", 2, Grain::operation, -1)));  // waits for the second one early
}

TEST_F(TwoTiles, NeverTakeFromTheAccumulatorWhatIsStored) {
  EXPECT_FALSE(board.make(move("all of add", 4, Grain::operation, -1)));
  EXPECT_FALSE(board.make(move("all of add", 0, Grain::step, 1)));  // a load replaces what it is added to
}

TEST(ReadsInFlight, AreThoseOfTheLastStoreWithNothingBetween) {
  ScheduleBuilder builder("copies", 1);
  const std::int16_t in = builder.buffer({"in", DType::fp32, 32, 16, 16, 16});
  const std::int16_t own = builder.buffer({"own", DType::fp32, 32, 16, 16, 16});
  const std::int16_t out = builder.buffer({"out", DType::fp32, 32, 16, 16, 16});
  builder.input(builder.whole(in));
  Kernel kernel;
  kernel.name = "copies";
  const std::int32_t id = builder.kernel(kernel);
  builder.workgroup(id);
  builder.copy(own, {0, 0, 16, 16}, 0, in, 0, 0, 0);
  builder.copy(own, {16, 0, 16, 16}, 0, in, 16, 0, 0);
  builder.load(own, {0, 0, 16, 16}, 0);
  builder.store(out, {0, 0, 16, 16}, 0);
  builder.launch(0, id);
  builder.host(0, HostOpKind::device_synchronize);
  const Schedule start = builder.finish();
  EXPECT_TRUE(reads_in_flight(start.ops, 0).empty());
  Schedule moved = start;
  std::swap(moved.ops[0], moved.ops[1]);
  EXPECT_EQ(reads_in_flight(moved.ops, 0).size(), 1U);
  const Machine machine = few_units();
  EXPECT_NE(SameResult(start, machine).fault(moved, std::vector<std::uint32_t>{1, 0, 2, 3}), "");
  TileBoard board(start, machine, [](const Schedule&) { return 1.0; });
  EXPECT_FALSE(board.make({0, 0, Grain::operation, 1}));
}

TEST_F(TwoTiles, SayWhatMoved) {
  EXPECT_EQ(board.describe(move("all of send", 1, Grain::step, -1)),
            "all of send: copy there[16:32, 0:16] -> GPU 1 and 1 more of its step up past 1 step");
  ASSERT_TRUE(board.make(move("all of send", 1, Grain::step, -1)));
  EXPECT_THAT(describe_order(two_tiles(), board.schedule(), board.start_of()),
              testing::ElementsAre("send: copy of peer +1: 1 earlier by 2.0, 1 later by 2.0",
                                   "send: signal of peer +1: 1 earlier by 2.0, 1 later by 2.0"));
}

TEST_F(TwoTiles, RefuseWhatHasNoPlace) {
  EXPECT_FALSE(board.make(move("all of send", 7, Grain::operation, 1)));
  EXPECT_FALSE(board.make(move("all of send", 1, Grain::tile, 1)));
  EXPECT_FALSE(board.make(move("all of send", 0, Grain::tile, 0)));
}

TEST(TileBoard, RefusesAStartThatIsNotSound) {
  Schedule broken = two_tiles();
  std::swap(broken.ops[4], broken.ops[5]);  // reads before it waits
  const Machine machine = few_units();
  EXPECT_THROW(TileBoard(broken, machine, {}), UserError);
}

}  // namespace
}  // namespace tritax
