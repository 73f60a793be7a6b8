#include <gtest/gtest.h>

#include "model/core/error.hpp"
#include "model/schedule/relax.hpp"
#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

constexpr std::int32_t kMost = 2147483647;

// Rank 0 of `ranks` loads the first element of a buffer.
Schedule with_buffer(const Buffer& buffer, int ranks = 1) {
  SmallSchedule s(ranks);
  const auto index = s.builder.buffer(buffer);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.builder.load(index, {0, 0, 1, 1}, 0);
  s.builder.launch(0, k);
  return s.builder.finish();
}

TEST(CheckLimits, SidesThatOverflowWithTheirTileAreRefused) {
  expect_finding(with_buffer({"X", DType::fp8, kMost, 1, kMost, 1}), Kind::out_of_range, "buffer 'X'",
                 "shape 2147483647×1 with tile 2147483647×1; all must be 1 to 1073741824");
  expect_finding(with_buffer({"X", DType::fp8, 1, 1, 1, (1 << 30) + 1}), Kind::out_of_range, "buffer 'X'",
                 "1 to 1073741824");
  expect_sound(with_buffer({"X", DType::fp8, 1 << 30, 1, 1 << 30, 1}));
}

TEST(CheckLimits, TilesThatNobodyCouldFollowAreRefused) {
  const Buffer most{"X", DType::fp8, 1 << 26, 1, 1, 1};
  expect_sound(with_buffer(most));
  expect_finding(
      with_buffer(most, 2), Kind::out_of_range, "buffer 'X'",
      "in tiles of 1×1 are 67108864 tiles on each of 2 ranks; what is loaded, stored or copied has "
      "at most 67108864 on all ranks together");
  expect_finding(with_buffer({"X", DType::fp8, 1 << 30, 1 << 30, 1, 1}), Kind::out_of_range, "buffer 'X'",
                 "1152921504606846976 tiles");
}

TEST(CheckLimits, OperandsOfAMatmulAreNotFollowedTileByTile) {
  expect_sound(one_workgroup([](auto& s) {
    const auto a = s.builder.buffer({"wide", DType::fp16, 256, 1 << 20, 1, 1});
    const auto b = s.builder.buffer({"tall", DType::fp16, 1 << 20, 256, 1, 1});
    s.builder.matmul(a, b, {0, 0, 256, 256}, 0, 1 << 20);
    s.builder.store(s.c, {0, 0, 256, 256}, 0);
  }));
}

TEST(CheckLimits, MoreCountersThanAllRanksCanHoldAreRefused) {
  SmallSchedule s(8);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.builder.launch(0, k);
  Schedule schedule = s.builder.finish();
  schedule.flags[0].count = 1 << 24;
  expect_sound(schedule);
  schedule.flags.push_back({"more", 1});
  expect_finding(schedule, Kind::out_of_range, "schedule",
                 "16777217 counters on each of 8 ranks; all ranks together have at most 134217728");
}

TEST(CheckLimits, LaunchesThatMultiplyBeyondAllMemoryAreRefused) {
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  for (int w = 0; w < 1000; ++w) s.builder.workgroup(k);
  Graph graph(1000, {k, 0});
  s.builder.graph_launch(0, graph);
  Schedule schedule = s.builder.finish();
  schedule.host[0].resize(1000, schedule.host[0][0]);
  expect_finding(schedule, Kind::out_of_range, "host operation 267 (graph_launch) of rank 0",
                 "run 268536000 workgroups and operations; a schedule runs at most 268435456");
}

TEST(CheckLimits, MatrixTilesThatNoRegistersHoldAreRefused) {
  Schedule schedule = one_workgroup([](auto& s) { s.compute(0); });
  schedule.kernels[0].tile = {kMost, 256, 64, 8, Pipeline::serial};
  expect_finding(schedule, Kind::meaningless, "kernel 'k' rank 0 workgroup 0 operation 0 (matmul)",
                 "2147483647×256×64 with 8 waves; a kernel with matmul needs 1 to 65536 each way");
  schedule.kernels[0].tile = {256, 256, 64, 65, Pipeline::serial};
  expect_finding(schedule, Kind::meaningless, "kernel 'k' rank 0 workgroup 0 operation 0 (matmul)",
                 "1 to 64 waves");
}

TEST(CheckLimits, CountersThatOverflowAreRefused) {
  const auto signals = [](int first, int second) {
    return one_workgroup([&](auto& s) {
      s.signal(3, 0, first);
      s.signal(3, 0, second);
      s.wait(3, 1);
    });
  };
  expect_sound(signals(kMost - 1, 1));
  expect_finding(signals(kMost, kMost), Kind::out_of_range,
                 "kernel 'k' rank 0 workgroup 0 operation 1 (signal)",
                 "adds to ready[3] of rank 0, whose signals and claims add up to 4294967294; a counter of 32 "
                 "bits holds at most 2147483647");
}

TEST(CheckLimits, CountersThatOverflowOverSeveralLaunchesAreRefused) {
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.signal(0, 0, 1 << 30);
  s.builder.launch(0, k);
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::out_of_range, "kernel 'k' rank 0 workgroup 0 operation 0 (signal)",
                 "add up to 2147483648");
}

TEST(CheckLimits, OneRefusedOperationDrawsNoOthersAlong) {
  const auto findings = check_schedule(one_workgroup([](auto& s) {
    s.builder.load(s.c, {0, 0, 513, 8}, 0);
    s.builder.store(s.c, {0, 0, 8, 8}, 0);
  }));
  ASSERT_EQ(findings.size(), 1U) << text_of(findings);
  EXPECT_NE(findings[0].message.find("tile C[0:513"), std::string::npos);
}

TEST(CheckLimits, MoreFlagArraysThanTheyHaveNumbersAreRefused) {
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.builder.launch(0, k);
  Schedule schedule = s.builder.finish();
  schedule.flags.resize(32767, {"more", 1});
  expect_sound(schedule);
  with_tile_dependences(schedule);  // which may add one
  schedule.flags.push_back({"more", 1});
  expect_finding(schedule, Kind::out_of_range, "schedule", "32768 flag arrays; a schedule has at most 32767");
}

// A name may be anything that JSON can hold.
TEST(CheckLimits, AFindingIsOneLineWhateverNamesItRepeats) {
  Buffer buffer{"a\n\x1b[2J" + std::string(100'000, 'x'), DType::fp8, kMost, 1, kMost, 1};
  const std::vector<Finding> findings = check_schedule(with_buffer(buffer));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].where.find_first_of("\n\x1b"), std::string::npos);
  EXPECT_LT(findings[0].where.size(), 300u);
}

// Before they fill memory: the library's all-gather has a copy for every peer, channel and rank.
TEST(CheckLimits, ABuilderRefusesSchedulesThatNobodyCouldSimulate) {
  ScheduleBuilder builder("huge", 1);
  const auto k = builder.kernel(Kernel{});
  builder.workgroup(k);
  std::string message;
  try {
    for (;;) builder.barrier();
  } catch (const UserError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("8388609 tile operations and more are too many"), std::string::npos) << message;
}

}  // namespace
}  // namespace tritax
