// Blocks behind a claim may be skipped, and any workgroup may be the one that does the item.
#include <gtest/gtest.h>

#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

const std::string kOperation = "kernel 'k' rank 0 workgroup 0 operation ";

// As SmallSchedule, with four queues.
struct Claiming : SmallSchedule {
  std::int16_t queue;
  explicit Claiming(int ranks = 1) : SmallSchedule(ranks), queue(builder.flags("queue", 4)) {}
  void claim(int index, int limit, int skip) { builder.claim(queue, index, limit, skip); }
  // A kernel whose workgroup computes tile 0, stores it and signals flag 0.
  std::int32_t writer() {
    const auto k = kernel("writer", 0);
    builder.workgroup(k);
    compute(0);
    store(0, 0);
    signal(0, 0);
    return k;
  }
};

template <typename Add>
Schedule claiming_workgroup(Add add, bool registers_filled = false) {
  Claiming s;
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  add(s);
  s.builder.launch(0, k);
  Schedule schedule = s.builder.finish();
  schedule.kernels[0].registers_filled = registers_filled;
  return schedule;
}

TEST(CheckClaims, AClaimInsideTheBlockOfAnotherIsRefused) {
  for (const int inner : {0, 1}) {
    expect_finding(claiming_workgroup([&](Claiming& s) {
                     s.claim(0, 2, 4);
                     s.compute(0);
                     s.claim(inner, 2, 1);
                     s.compute(1);
                     s.store(1, 0);
                   }),
                   Kind::meaningless, kOperation + "2 (claim)",
                   "claims inside the block of operation 0 (claim), which ends before operation 5");
  }
}

TEST(CheckClaims, ClaimsAfterEachOtherAreSound) {
  expect_sound(claiming_workgroup([](Claiming& s) {
    for (int i = 0; i < 3; ++i) {
      s.claim(0, 3, 2);
      s.compute(i);
      s.store(i, 0);
    }
  }));
}

TEST(CheckClaims, WhatASkippedBlockWouldHaveComputedCannotBeStored) {
  const auto schedule = [](auto before, auto after, bool filled = false) {
    return claiming_workgroup(
        [&](Claiming& s) {
          before(s);
          s.claim(0, 1, 1);
          s.compute(0);
          after(s);
        },
        filled);
  };
  const auto nothing = [](Claiming&) {};
  const auto store = [](Claiming& s) { s.store(0, 0); };
  const auto load = [](Claiming& s) { s.builder.load(s.b, {0, 0, 256, 256}, 0); };
  expect_finding(schedule(nothing, store), Kind::meaningless, kOperation + "2 (store)",
                 "depends on whether operation 0 (claim) skips its block");
  const auto store_small = [](Claiming& s) {
    s.builder.load(s.b, {0, 0, 8, 8}, 0);
    s.builder.store(s.c, {0, 0, 8, 8}, 0);
  };
  expect_finding(schedule(store_small, store), Kind::meaningless, kOperation + "4 (store)",
                 "depends on whether operation 2 (claim) skips its block");
  expect_sound(schedule(load, store));  // a tile of the same shape in either case
  expect_sound(schedule(nothing, [&](Claiming& s) {
    load(s);
    s.store(0, 0);
  }));
  expect_sound(schedule(nothing, store, true));
}

TEST(CheckClaims, ACounterIsAQueueOrAFlag) {
  expect_finding(
      claiming_workgroup([](Claiming& s) {
        s.builder.wait(s.queue, 0, 1, Scope::gpu, kPlain);
        s.claim(0, 1, 1);
        s.compute(0);
      }),
      Kind::meaningless, kOperation + "0 (wait)",
      "waits for queue[0] of rank 0, from which kernel 'k' rank 0 workgroup 0 operation 1 (claim)");
  expect_finding(claiming_workgroup([](Claiming& s) {
                   s.builder.signal(s.queue, 0, 1, 0, Scope::gpu, kPlain);
                   s.claim(0, 2, 1);
                   s.compute(0);
                 }),
                 Kind::meaningless, kOperation + "0 (signal)", "signals queue[0] of rank 0, from which");
}

// Each of `readers` waits for the writer behind a claim, and loads there or behind it.
Schedule waits_behind_a_claim(int readers, bool load_in_block) {
  Claiming s;
  const auto writer = s.writer();
  const auto reader = s.kernel("reader", 0);
  for (int i = 0; i < readers; ++i) {
    s.builder.workgroup(reader);
    s.claim(0, 1, load_in_block ? 2 : 1);
    s.wait(0);
    s.builder.load(s.c, SmallSchedule::tile(0), 0);
  }
  s.builder.launch(0, writer, 0);
  s.builder.launch(0, reader, 1);
  return s.builder.finish();
}

TEST(CheckClaims, AWaitThatMayBeSkippedOrdersNothingBehindItsBlock) {
  expect_sound(waits_behind_a_claim(2, true));
  expect_finding(waits_behind_a_claim(2, false), Kind::unordered_read,
                 "kernel 'reader' rank 0 workgroup 0 operation 2 (load)",
                 "which kernel 'writer' rank 0 workgroup 0 operation 1 (store) writes");
}

// "second" copies what it has waited for behind a claim; `read` loads what was copied.
template <typename Read>
Schedule copied_behind_a_claim(Read read) {
  Claiming s;
  const auto d = s.builder.buffer({"D", DType::fp16, 512, 512, 256, 256});
  const auto writer = s.writer();
  const auto second = s.kernel("second", 0);
  s.builder.workgroup(second);
  s.claim(0, 1, 3);
  s.wait(0);
  s.builder.copy(d, SmallSchedule::tile(0), 0, s.c, 0, 0, 0);
  s.signal(1, 0);
  s.signal(2, 0);  // behind the block
  s.builder.launch(0, writer, 0);
  s.builder.launch(0, second, 1);
  read(s, d);
  return s.builder.finish();
}

TEST(CheckClaims, WhatABlockWritesIsOrderedBeforeAllThatFollowsIt) {
  const auto load = [](Claiming& s, std::int16_t buffer) {
    s.builder.load(buffer, SmallSchedule::tile(0), 0);
  };
  for (const int flag : {1, 2}) {  // signalled in the block and behind it
    expect_sound(copied_behind_a_claim([&](Claiming& s, std::int16_t d) {
      const auto k = s.kernel("k", 0);
      s.builder.workgroup(k);
      s.wait(flag);
      load(s, d);
      s.builder.launch(0, k, 2);
    }));
  }
  expect_sound(copied_behind_a_claim([&](Claiming& s, std::int16_t d) {
    const auto k = s.kernel("k", 0);
    s.builder.workgroup(k);
    load(s, d);
    s.builder.launch(0, k, 1);  // after "second"
  }));
  // What the block has waited for is behind its own signal, but not behind the one that follows the block.
  for (const int flag : {1, 2}) {
    const auto findings = check_schedule(copied_behind_a_claim([&](Claiming& s, std::int16_t) {
      const auto k = s.kernel("k", 0);
      s.builder.workgroup(k);
      s.wait(flag);
      load(s, s.c);
      s.builder.launch(0, k, 2);
    }));
    EXPECT_EQ(findings.size(), flag == 1 ? 0U : 1U) << text_of(findings);
  }
}

// Two workgroups claim from a queue of `items`; one then signals flag 0 and the other `flag`, both with 1
// and 2.
Schedule two_claim(int items, int flag, int wait_for) {
  Claiming s;
  const auto k = s.kernel("k", 0);
  for (int i = 0; i < 2; ++i) {
    s.builder.workgroup(k);
    s.claim(0, items, 1);
    s.signal(i == 0 ? 0 : flag, 0, i + 1);
  }
  s.builder.workgroup(k);
  s.wait(0, wait_for);
  s.builder.launch(0, k);
  return s.builder.finish();
}

TEST(CheckClaims, AFlagCountsOnlyWhatIsSignalledWhoeverGetsTheItem) {
  expect_sound(two_claim(1, 0, 1));
  expect_sound(two_claim(2, 0, 3));
  expect_sound(two_claim(2, 1, 1));
  const std::string wait = "kernel 'k' rank 0 workgroup 2 operation 0 (wait)";
  expect_finding(two_claim(1, 0, 2), Kind::unsatisfiable_wait, wait,
                 "waits for ready[0] of rank 0 >= 2, but only 1 is certain");
  expect_finding(
      two_claim(1, 1, 1), Kind::unsatisfiable_wait, wait,
      "but only 0 is certain: more operations claim from a queue than it has items, and not all of "
      "their blocks signal this flag alike (kernel 'k' rank 0 workgroup 0 operation 1 (signal))");
  expect_finding(two_claim(1, 0, 3), Kind::unsatisfiable_wait, wait, "its 2 signals add up to 2");
}

TEST(CheckClaims, ADeadlockOfTheWorkgroupThatHappensToGetTheItemIsFound) {
  Claiming s;
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.claim(0, 1, 1);
  s.signal(0, 0);
  s.builder.workgroup(k);
  s.claim(0, 1, 2);
  s.wait(1);  // signalled by who waits for this very item
  s.signal(0, 0);
  s.builder.workgroup(k);
  s.wait(0);
  s.signal(1, 0);
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::deadlock, "kernel 'k' rank 0 workgroup 1 operation 1 (wait)",
                 "cycle of waits");
}

}  // namespace
}  // namespace tritax
