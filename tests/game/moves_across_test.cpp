// Moves between workgroups: operations that go with a unit, operations that must stay, and the way back to
// the start.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "model/schedule/builder.hpp"
#include "model/schedule/check.hpp"
#include "model/select/game/player.hpp"
#include "model/select/game/tile_board.hpp"
#include "model/workloads/registry.hpp"
#include "sim/functional.hpp"

namespace tritax {
namespace {

Machine small_machine() {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;
  machine.gpu.cus_per_xcd = 4;
  return machine;
}

// Two workgroups on GPU 0; the first copies tiles 0 and 1 to GPU 1 and signals each, the second copies tiles
// 2 and 3 and signals both together. GPU 1 waits for all and adds them up.
Schedule four_tiles() {
  ScheduleBuilder builder("four tiles", 2);
  const std::int16_t in = builder.buffer({"in", DType::fp32, 64, 16, 16, 16});
  const std::int16_t there = builder.buffer({"there", DType::fp32, 64, 16, 16, 16});
  const std::int16_t sum = builder.buffer({"sum", DType::fp32, 16, 16, 16, 16});
  const std::int16_t arrived = builder.flags("arrived", 3);
  builder.input(builder.whole(in));
  Kernel send;
  send.name = "send";
  const std::int32_t sender = builder.kernel(send);
  const auto copy = [&](std::int32_t t) { builder.copy(there, {16 * t, 0, 16, 16}, 1, in, 16 * t, 0, 0); };
  const auto signal = [&](std::int32_t flag) {
    builder.signal(arrived, flag, 1, 1, Scope::system, LockProtocol::load_store);
  };
  builder.workgroup(sender);
  for (std::int32_t t = 0; t < 2; ++t) {
    copy(t);
    signal(t);
  }
  builder.workgroup(sender);
  copy(2);
  copy(3);
  signal(2);
  Kernel add;
  add.name = "add";
  add.rank = 1;
  const std::int32_t adder = builder.kernel(add);
  builder.workgroup(adder);
  for (std::int32_t flag = 0; flag < 3; ++flag) {
    builder.wait(arrived, flag, 1, Scope::system, LockProtocol::load_store);
  }
  builder.load(there, {0, 0, 16, 16}, 1);
  for (std::int32_t t = 1; t < 4; ++t) builder.reduce(there, {16 * t, 0, 16, 16}, 1);
  builder.store(sum, {0, 0, 16, 16}, 1);
  for (int rank = 0; rank < 2; ++rank) {
    builder.launch(rank, rank == 0 ? sender : adder);
    builder.host(rank, HostOpKind::device_synchronize);
  }
  return builder.finish();
}

class FourTiles : public testing::Test {
 protected:
  std::vector<std::uint32_t> counts() const {
    std::vector<std::uint32_t> counts;
    for (const Workgroup& workgroup : board.schedule().kernels[0].workgroups)
      counts.push_back(workgroup.op_count);
    return counts;
  }
  const Machine machine = small_machine();
  TileBoard board{four_tiles(), machine, [](const Schedule&) { return 1.0; }};
};

using Counts = std::vector<std::uint32_t>;

TEST_F(FourTiles, GoToAnotherWorkgroupWithTheirSignal) {
  ASSERT_TRUE(board.make({0, 1, Grain::step, 1, MoveKind::give}));
  EXPECT_EQ(counts(), (Counts{2, 5}));
  // In front of what stood at place 1 there, the copy of tile 3.
  const std::vector<std::uint32_t> sent{0, 1, 4, 2, 3, 5, 6};
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), board.start_of().begin()));
  EXPECT_TRUE(board.lawful());
  board.take_back();
  EXPECT_EQ(counts(), (Counts{4, 3}));
  EXPECT_TRUE(std::is_sorted(board.start_of().begin(), board.start_of().end()));
}

TEST_F(FourTiles, LeaveNoWorkgroupWithNothing) {
  ASSERT_TRUE(board.make({0, 1, Grain::step, 1, MoveKind::give}));
  EXPECT_FALSE(board.make({6, 0, Grain::step, 1, MoveKind::give}));
}

TEST_F(FourTiles, StayWithWhatIsSignalledTogether) {
  // Tile 2 of the second workgroup has its signal behind tile 3.
  EXPECT_FALSE(board.make({0, 0, Grain::operation, 1, MoveKind::swap}));
  EXPECT_FALSE(board.make({0, 0, Grain::step, 1, MoveKind::swap}));
  EXPECT_FALSE(board.make({0, 2, Grain::operation, 1, MoveKind::give}));
}

TEST_F(FourTiles, TheLawSaysSoToo) {
  const Schedule start = four_tiles();
  const SameResult law(start, machine);
  Schedule moved = start;
  const std::vector<std::uint32_t> start_of{1, 2, 3, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  std::rotate(moved.ops.begin(), moved.ops.begin() + 1, moved.ops.begin() + 4);
  moved.kernels[0].workgroups[0].op_count = 3;
  moved.kernels[0].workgroups[1].first_op = 3;
  moved.kernels[0].workgroups[1].op_count = 4;
  EXPECT_NE(law.fault(moved, start_of).find("comes before what it publishes"), std::string::npos);
}

TEST_F(FourTiles, AreSeenByPlayers) {
  const TileBoard::View view = board.look({0, 0, Grain::step, 1, MoveKind::give});
  EXPECT_TRUE(view.allowed);
  EXPECT_EQ(view.unit_kind, static_cast<std::int32_t>(OpKind::copy));
  EXPECT_EQ(view.unit_peer, 1);
  EXPECT_EQ(view.operations, 2);
  EXPECT_FALSE(board.look({0, 0, Grain::operation, 1, MoveKind::swap}).allowed);
  EXPECT_FALSE(board.look({0, 99, Grain::operation, 1}).allowed);
  EXPECT_TRUE(std::is_sorted(board.start_of().begin(), board.start_of().end()));
}

TEST_F(FourTiles, SayWhereTheyWent) {
  EXPECT_EQ(board.describe({0, 1, Grain::step, 1, MoveKind::give}),
            "all of send: copy there[16:32, 0:16] -> GPU 1 and 1 more of its step goes to the workgroup 1 "
            "further on");
  ASSERT_TRUE(board.make({0, 1, Grain::step, 1, MoveKind::give}));
  const std::vector<std::string> order = describe_order(four_tiles(), board.schedule(), board.start_of());
  EXPECT_EQ(order,
            (std::vector<std::string>{"send: copy of peer +1: 1 later by 2.0, 1 in another workgroup",
                                      "send: signal of peer +1: 1 later by 2.0, 1 in another workgroup"}));
}

// Patterns of which tiles may go elsewhere.
constexpr std::array<std::array<std::string_view, 2>, 5> kPatterns{{{"gemm-all-scatter", "fused-sequential"},
                                                                    {"gemm-all-reduce", "ring"},
                                                                    {"gemm-reduce-scatter", "fused-atomics"},
                                                                    {"all-gather-gemm", "pull"},
                                                                    {"gemm-all-to-all", "chunked"}}};

// However units have gone about, everything is right, and can be taken back.
RC_GTEST_PROP(MovesAcross, ComputeWhatTheStartDoes, ()) {
  const auto& [name, pattern] = *rc::gen::elementOf(kPatterns);
  const Workload& workload = find_workload(name, "test");
  Machine machine = small_machine();
  Problem problem = problem_of(workload);
  for (const auto& [field, value] : {std::pair{"m", 90}, {"n", 104}, {"k", 40}, {"gpus", 2}}) {
    problem.values.give(field, value);
  }
  Values given(workload.knobs);
  for (const auto& [knob, value] : {std::pair{"tile_m", 32}, {"tile_n", 16}, {"tile_k", 16}, {"waves", 4}}) {
    given.give(knob, value);
  }
  const Schedule start = build_schedule(find_pattern(workload, pattern, "test"), problem, machine,
                                        resolved_knobs(problem, machine, given));
  TileBoard board(start, machine, [](const Schedule&) { return 1.0; });
  RC_PRE(board.crosses());
  Game game(board, {.moves = 12, .seed = *rc::gen::arbitrary<std::uint64_t>()});
  for (int tried = 0; tried < 400 && !game.over(); ++tried) {
    Move move = game.propose();
    if (move.kind == MoveKind::pass) move.kind = game.below(2) == 0 ? MoveKind::swap : MoveKind::give;
    if (move.grain == Grain::operation) move.grain = Grain::tile;
    game.try_move(move);
  }
  RC_ASSERT(check_schedule(board.schedule()).empty());
  RC_ASSERT(check_schedule_on(board.schedule(), machine).empty());
  const FunctionalResult result = execute_functionally(board.schedule(), machine, 7);
  RC_ASSERT(result.stale_reads.empty());
  RC_ASSERT(result.max_relative_error < 1e-6);
  game.back_to_start();
  for (std::size_t k = 0; k < start.kernels.size(); ++k) {
    for (std::size_t w = 0; w < start.kernels[k].workgroups.size(); ++w) {
      const Workgroup& now = board.schedule().kernels[k].workgroups[w];
      RC_ASSERT(now.first_op == start.kernels[k].workgroups[w].first_op);
      RC_ASSERT(now.op_count == start.kernels[k].workgroups[w].op_count);
    }
  }
  RC_ASSERT(std::is_sorted(board.start_of().begin(), board.start_of().end()));
}

}  // namespace
}  // namespace tritax
