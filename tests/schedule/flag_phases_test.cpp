// Signals that set their flag or publish nothing: what is lost by them, and what is not.
#include "model/schedule/flag_phases.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

constexpr int kReady = 0;
constexpr int kTaken = 1;

struct Flags : SmallSchedule {
  using SmallSchedule::SmallSchedule;

  void set(int index, int rank, int value, MemoryOrder order = MemoryOrder::release) {
    builder.set_flag(ready, index, value, rank, Scope::system, kPlain, order);
  }
  void add(int index, int rank, MemoryOrder order = MemoryOrder::release) {
    builder.signal(ready, index, 1, rank, Scope::system, kPlain, order);
  }
  void wait_for(int index, int value = 1) { builder.wait(ready, index, value, Scope::system, kPlain); }
};

// Rank 0 writes a tile of rank 1 twice, signals each time, and goes on once rank 1 has said that it has read
// it; rank 1 sets the flag back after each read.
Schedule mailbox(bool acknowledged, MemoryOrder order = MemoryOrder::release) {
  Flags s(2);
  const auto writer = s.kernel("writer", 0);
  s.builder.workgroup(writer);
  for (int round = 1; round <= 2; ++round) {
    s.compute(0);
    s.store(0, 1);
    s.add(kReady, 1, order);
    if (acknowledged) s.wait_for(kTaken, round);
  }
  const auto reader = s.kernel("reader", 1);
  s.builder.workgroup(reader);
  for (int round = 1; round <= 2; ++round) {
    s.wait_for(kReady);
    s.builder.load(s.c, SmallSchedule::tile(0), 1);
    s.set(kReady, 1, 0);
    s.add(kTaken, 0);
  }
  s.builder.launch(0, writer);
  s.builder.launch(1, reader);
  return s.builder.finish();
}

TEST(FlagPhases, AFlagThatIsSetBackBetweenAnswersLosesNothing) { expect_sound(mailbox(true)); }

TEST(FlagPhases, ASignalUnderWayMayBeLostWhenTheFlagIsSetBack) {
  expect_finding(
      mailbox(false), Kind::flag_race, "kernel 'reader' rank 1 workgroup 0 operation 2 (signal)",
      "sets ready[0] of rank 1 to 0, and kernel 'writer' rank 0 workgroup 0 operation 5 (signal) adds 1 "
      "to it; nothing orders one before the other");
}

// The case of vllm-project/vllm issue 57059 and NVIDIA/nvshmem PR 98: a kernel sets its flags back at its
// begin, while a peer may have signalled for it already.
TEST(FlagPhases, AKernelThatClearsItsFlagsMayClearASignalOfAPeer) {
  for (const bool behind_a_barrier : {false, true}) {
    Flags s(2);
    for (int rank = 0; rank < 2; ++rank) {
      const auto clear = s.kernel("clear", rank);
      s.builder.workgroup(clear);
      s.set(kReady, rank, 0);
      const auto exchange = s.kernel("exchange", rank);
      s.builder.workgroup(exchange);
      s.add(kReady, 1 - rank);
      s.wait_for(kReady);
      s.builder.launch(rank, clear, 0);
      if (behind_a_barrier) {
        s.builder.host(rank, HostOpKind::device_synchronize);
        s.builder.host(rank, HostOpKind::barrier);
      }
      s.builder.launch(rank, exchange, 0);
    }
    const Schedule schedule = s.builder.finish();
    if (behind_a_barrier) {
      expect_sound(schedule);
    } else {
      expect_finding(schedule, Kind::flag_race, "kernel 'clear' rank 0 workgroup 0 operation 0 (signal)",
                     "kernel 'exchange' rank 1 workgroup 0 operation 0 (signal) adds 1 to it");
      EXPECT_EQ(check_schedule(schedule).size(), 1U);
    }
  }
}

TEST(FlagPhases, AWaitMayMissAValueThatAnotherWaiterSetsBack) {
  Flags s(1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.add(kReady, 0);
  for (int waiter = 0; waiter < 2; ++waiter) {
    s.builder.workgroup(k);
    s.wait_for(kReady);
    if (waiter == 0) s.set(kReady, 0, 0);
  }
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::flag_race, "kernel 'k' rank 0 workgroup 1 operation 1 (signal)",
                 "kernel 'k' rank 0 workgroup 2 operation 0 (wait) waits for it to be 1");
}

TEST(FlagPhases, ValuesThatOnlyRiseNeedNoAnswers) {
  Flags s(1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  for (int i = 0; i < 3; ++i) {
    s.compute(i);
    s.store(i, 0);
    s.set(kReady, 0, i + 1);
  }
  s.builder.workgroup(k);
  for (int i = 0; i < 3; ++i) {
    s.wait_for(kReady, i + 1);
    s.builder.load(s.c, SmallSchedule::tile(i), 0);
  }
  s.builder.launch(0, k);
  Schedule schedule = s.builder.finish();
  expect_sound(schedule);
  schedule.ops[5].value = 0;  // the flag falls behind the second tile
  EXPECT_EQ(check_schedule(schedule)[0].kind, Kind::flag_race);
}

TEST(FlagPhases, TwoThatSetOneFlagRace) {
  Flags s(1);
  const auto k = s.kernel("k", 0);
  for (int value = 1; value <= 2; ++value) {
    s.builder.workgroup(k);
    s.set(kReady, 0, value);
  }
  s.builder.launch(0, k);
  const auto findings = check_schedule(s.builder.finish());
  ASSERT_EQ(findings.size(), 1U) << text_of(findings);
  EXPECT_EQ(findings[0].kind, Kind::flag_race);
  EXPECT_NE(findings[0].message.find("(signal) sets it to"), std::string::npos) << findings[0].message;
}

TEST(FlagPhases, ARelaxedSignalPublishesNothing) {
  expect_finding(mailbox(true, MemoryOrder::relaxed), Kind::unordered_read,
                 "kernel 'reader' rank 1 workgroup 0 operation 1 (load)",
                 "nothing orders one before the other");
}

TEST(FlagPhases, ARelaxedSignalCounts) {
  Flags s(1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.add(kReady, 0, MemoryOrder::relaxed);
  s.wait_for(kTaken);
  s.add(kReady, 0, MemoryOrder::relaxed);
  s.builder.workgroup(k);
  for (int round = 0; round < 2; ++round) {
    s.wait_for(kReady);
    s.set(kReady, 0, 0, MemoryOrder::relaxed);
    s.add(kTaken, 0);
  }
  s.builder.launch(0, k);
  expect_sound(s.builder.finish());
}

TEST(FlagPhases, AWaitForMoreThanAFlagIsSetToIsUnsatisfiable) {
  Flags s(1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.set(kReady, 0, 2);
  s.wait_for(kReady, 3);
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::unsatisfiable_wait,
                 "kernel 'k' rank 0 workgroup 0 operation 1 (wait)", "waits for ready[0] of rank 0 >= 3");
}

TEST(FlagPhases, NoFlagIsSetInABlockThatMayBeSkipped) {
  Flags s(1);
  const auto queue = s.builder.flags("queue", 1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.builder.claim(queue, 0, 1, 1);
  s.set(kReady, 0, 1);
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::meaningless, "kernel 'k' rank 0 workgroup 0 operation 1 (signal)",
                 "sets a flag in the block of operation 0 (claim)");
}

// Runs one kernel of resident workgroups, one operation at a time, whichever can go on.
bool ends(const Schedule& schedule, unsigned seed) {
  std::mt19937 random(seed);
  const Kernel& kernel = schedule.kernels[0];
  std::vector<std::uint32_t> next(kernel.workgroups.size(), 0);
  std::vector<std::int64_t> flags(16, 0);
  for (;;) {
    std::vector<std::size_t> able;
    bool all_done = true;
    for (std::size_t w = 0; w < next.size(); ++w) {
      if (next[w] == kernel.workgroups[w].op_count) continue;
      all_done = false;
      const Op& op = schedule.ops[kernel.workgroups[w].first_op + next[w]];
      if (op.kind != OpKind::wait || flags[static_cast<std::size_t>(op.index)] >= op.value) able.push_back(w);
    }
    if (able.empty()) return all_done;
    const std::size_t w = able[random() % able.size()];
    const Op& op = schedule.ops[kernel.workgroups[w].first_op + next[w]++];
    std::int64_t& flag = flags[static_cast<std::size_t>(op.index)];
    if (op.kind == OpKind::signal) flag = (op.change == FlagChange::set ? 0 : flag) + op.value;
  }
}

// Two or three workgroups that wait for flags, add to them and set them.
Schedule any_flags() {
  Flags s(1);
  const auto k = s.kernel("k", 0);
  const int workgroups = *rc::gen::inRange(2, 4);
  for (int w = 0; w < workgroups; ++w) {
    s.builder.workgroup(k);
    for (int ops = *rc::gen::inRange(1, 5); ops > 0; --ops) {
      const int flag = *rc::gen::inRange(0, 3);
      const int value = *rc::gen::inRange(1, 3);
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
          s.set(flag, 0, value - 1);
          break;
        case 1:
          s.wait_for(flag, value);
          break;
        default:
          s.add(flag, 0);
      }
    }
  }
  s.builder.launch(0, k);
  return s.builder.finish();
}

RC_GTEST_PROP(FlagPhases, WhatPassesEndsInWhateverOrderThingsHappen, ()) {
  int sound = 0;
  for (int i = 0; i < 10; ++i) {
    const Schedule schedule = any_flags();
    if (!check_schedule(schedule).empty()) continue;
    ++sound;
    for (unsigned seed = 0; seed < 40; ++seed) RC_ASSERT(ends(schedule, seed));
  }
  RC_CLASSIFY(sound > 0, "some sound");
}

}  // namespace
}  // namespace tritax
