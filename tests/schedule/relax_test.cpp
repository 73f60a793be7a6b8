#include "model/schedule/relax.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/small_schedules.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

std::size_t count(const Schedule& schedule, OpKind kind) {
  return static_cast<std::size_t>(
      std::count_if(schedule.ops.begin(), schedule.ops.end(), [&](const Op& op) { return op.kind == kind; }));
}

std::size_t count(const Schedule& schedule, HostOpKind kind) {
  std::size_t number = 0;
  for (const auto& program : schedule.host) {
    number += static_cast<std::size_t>(
        std::count_if(program.begin(), program.end(), [&](const HostOp& op) { return op.kind == kind; }));
  }
  return number;
}

TEST(Relax, BoundariesBecomeOneFlagForEveryTileAndRank) {
  const Schedule relaxed = with_tile_dependences(bulk_synchronous());
  expect_sound(relaxed);
  // Each rank stores two tiles that its scatter and its reader wait for, and sends two that the other's
  // reader waits for.
  EXPECT_EQ(count(relaxed, OpKind::signal), 2U * (2 + 2));
  EXPECT_EQ(count(relaxed, OpKind::wait), 2U * (2 + 4));
  ASSERT_EQ(relaxed.flags.size(), 2U);
  EXPECT_EQ(relaxed.flags[1].name, "tile-dependences");
  EXPECT_EQ(relaxed.flags[1].count, 8);
}

TEST(Relax, OnlyTheLastSynchronisationAndTheHarnessStay) {
  const Schedule relaxed = with_tile_dependences(bulk_synchronous());
  EXPECT_EQ(count(relaxed, HostOpKind::barrier), 2U * 2) << "the one between the kernels goes";
  EXPECT_EQ(count(relaxed, HostOpKind::stream_synchronize), 0U);
  EXPECT_EQ(count(relaxed, HostOpKind::device_synchronize), 2U);
  const std::vector<HostOp>& program = relaxed.host[0];
  EXPECT_EQ(program.front().kind, HostOpKind::barrier);
  EXPECT_EQ(program[program.size() - 2].kind, HostOpKind::device_synchronize);
  EXPECT_EQ(program.back().kind, HostOpKind::barrier);
}

TEST(Relax, EveryKernelHasItsOwnStream) {
  const Schedule relaxed = with_tile_dependences(bulk_synchronous());
  for (const auto& program : relaxed.host) {
    EXPECT_EQ(program[1].stream, 0);  // behind the barrier of the harness
    EXPECT_EQ(program[2].stream, 1);
    EXPECT_EQ(program[3].stream, 2);
  }
}

TEST(Relax, TheScopeIsSystemOnlyAcrossRanks) {
  const Schedule relaxed = with_tile_dependences(bulk_synchronous());
  std::size_t system = 0;
  for (const Op& op : relaxed.ops) {
    system += op.kind == OpKind::signal && op.scope == Scope::system ? 1 : 0;
  }
  EXPECT_EQ(system, 4U);  // the tiles that were sent
}

TEST(Relax, FlagsThatOrderAlreadyNeedNoOther) {
  const Schedule schedule = producer_consumer();
  const Schedule relaxed = with_tile_dependences(schedule);
  expect_sound(relaxed);
  EXPECT_EQ(relaxed.flags.size(), schedule.flags.size());
  EXPECT_EQ(relaxed.ops.size(), schedule.ops.size());
}

TEST(Relax, WithoutTheNewFlagsTheReadsAreUnordered) {
  Schedule relaxed = with_tile_dependences(bulk_synchronous());
  for (Op& op : relaxed.ops) {
    if (op.kind == OpKind::signal || op.kind == OpKind::wait) {
      op = Op{};
    }
  }
  EXPECT_EQ(check_schedule(relaxed)[0].kind, Finding::Kind::unordered_read);
}

TEST(Relax, ABufferThatIsWrittenAgainWaitsForItsReaders) {
  SmallSchedule s(1);
  const auto write = s.kernel("write", 0);
  s.builder.workgroup(write);
  s.compute(0);
  s.store(0, 0);
  const auto read = s.kernel("read", 0);
  s.builder.workgroup(read);
  s.builder.load(s.c, SmallSchedule::tile(0), 0);
  for (int i = 0; i < 2; ++i) {
    s.builder.launch(0, write);
    s.builder.launch(0, read);
  }
  const Schedule schedule = s.builder.finish();
  expect_sound(schedule);
  const Schedule relaxed = with_tile_dependences(schedule);
  expect_sound(relaxed);
  ASSERT_EQ(relaxed.kernels.size(), 4U);  // one for every launch
  EXPECT_EQ(relaxed.kernels[2].name, "write (launch 2)");
  const Workgroup& again = relaxed.kernels[2].workgroups[0];
  std::size_t waits = 0;
  for (std::uint32_t i = 0; i < again.op_count; ++i) {
    waits += relaxed.ops[again.first_op + i].kind == OpKind::wait ? 1 : 0;
  }
  EXPECT_EQ(waits, 2U);  // for the first write and for its reader
  EXPECT_EQ(count(relaxed, HostOpKind::device_synchronize), 0U);
}

TEST(Relax, FlagsStandOutsideOfBlocksThatMayBeSkipped) {
  SmallSchedule s(1);
  const auto queue = s.builder.flags("queue", 1);
  const auto write = s.kernel("write", 0);
  for (int i = 0; i < 2; ++i) {
    s.builder.workgroup(write);
    s.builder.claim(queue, 0, 1, 2);
    s.compute(0);
    s.store(0, 0);
  }
  const auto read = s.kernel("read", 0);
  s.builder.workgroup(read);
  s.builder.load(s.c, SmallSchedule::tile(0), 0);
  s.builder.launch(0, write);
  s.builder.launch(0, read);
  const Schedule relaxed = with_tile_dependences(s.builder.finish());
  expect_sound(relaxed);
  for (const Workgroup& workgroup : relaxed.kernels[0].workgroups) {
    ASSERT_EQ(workgroup.op_count, 4U);
    EXPECT_EQ(relaxed.ops[workgroup.first_op].rect.rows, 2);
    EXPECT_EQ(relaxed.ops[workgroup.first_op + 3].kind, OpKind::signal);
  }
}

TEST(Relax, ReferencesOutOfRangeAreRefused) {
  Schedule schedule = bulk_synchronous();
  schedule.ops[1].rank = 5;
  EXPECT_THROW(with_tile_dependences(schedule), UserError);
}

// Every tile lock of a pattern is needed: without it some read is unordered.
TEST(PatternLocks, NoWaitForATileIsSuperfluous) {
  const Machine machine = find_machine("mi300x-8");
  for (const char* name : {"producer-consumer", "workgroup-specialised"}) {
    const Schedule schedule = build(name, {1000, 2300, 512, DType::fp16, 4}, machine, GemmKnobs{});
    std::size_t locks = 0;
    for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
      const Op& op = schedule.ops[i];
      if (op.kind == OpKind::wait && schedule.flags[static_cast<std::size_t>(op.flag)].name == "lock") {
        ++locks;
        Schedule damaged = schedule;
        damaged.ops[i] = Op{};
        EXPECT_FALSE(check_schedule(damaged, 1).empty()) << name << " operation " << i;
      }
    }
    EXPECT_GT(locks, 0U) << name;
  }
}

class RelaxPattern : public testing::TestWithParam<std::string_view> {};

TEST_P(RelaxPattern, IsSoundBeforeAndAfter) {
  const Machine machine = find_machine("mi300x-8");
  const Pattern& pattern = find_pattern(gemm_all_scatter(), GetParam(), "test");
  for (const LaunchMode launch : {LaunchMode::stream, LaunchMode::graph}) {
    for (const int gpus : {1, 2, 8}) {
      GemmKnobs knobs;
      knobs.launch = launch;
      const Schedule schedule = build(pattern, {1000, 2300, 512, DType::fp16, gpus}, machine, knobs);
      expect_sound(schedule);
      EXPECT_TRUE(check_schedule_on(schedule, machine).empty());
      const Schedule relaxed = with_tile_dependences(schedule);
      expect_sound(relaxed);
      EXPECT_EQ(count(relaxed, HostOpKind::barrier), 2U * static_cast<unsigned>(gpus));  // of the harness
    }
  }
}

std::vector<std::string_view> pattern_names() {
  std::vector<std::string_view> names;
  for (const Pattern& pattern : gemm_all_scatter().patterns) {
    names.push_back(pattern.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, RelaxPattern, testing::ValuesIn(pattern_names()), [](const auto& pattern) {
  std::string name(pattern.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace tritax
