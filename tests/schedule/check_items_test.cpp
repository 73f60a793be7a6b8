// Items of work queues: which tables are refused, what is ordered behind what, and who may wait for whom.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "model/schedule/items.hpp"
#include "model/schedule/relax.hpp"
#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/small_schedules.hpp"
#include "tests/schedule/tiny_programs.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

const std::string kKernel = "kernel 'k' rank 0 ";

// As SmallSchedule, with counters for queues.
struct Queued : SmallSchedule {
  std::int16_t queue;
  explicit Queued(int ranks = 1) : SmallSchedule(ranks), queue(builder.flags("queue", 4)) {}
  void workers(std::int32_t k, int count, std::int32_t items) {
    for (int i = 0; i < count; ++i) {
      builder.workgroup(k);
      builder.claim_items(queue, 0, 0, items);
    }
  }
  // An item that computes a tile and stores it.
  void tile_item(std::int32_t k, int tile) {
    builder.item(k);
    compute(tile);
    store(tile, 0);
  }
};

// Two workgroups, two items; `damage` changes the schedule.
template <typename Damage>
Schedule damaged(Damage damage) {
  Queued s;
  const auto k = s.kernel("k", 0);
  s.workers(k, 2, 2);
  s.tile_item(k, 0);
  s.tile_item(k, 1);
  s.builder.launch(0, k);
  Schedule schedule = s.builder.finish();
  damage(schedule);
  return schedule;
}

TEST(CheckItems, AQueueOfTilesIsSound) {
  const Schedule schedule = damaged([](Schedule&) {});
  expect_sound(schedule);
  EXPECT_EQ(schedule.ops.size(), 2U + 4U);
  EXPECT_EQ(schedule.kernels[0].items[1].first_op, 4U);
  EXPECT_EQ(item_of(schedule.kernels[0], 1), -1);
  EXPECT_EQ(item_of(schedule.kernels[0], 3), 0);
  EXPECT_EQ(item_of(schedule.kernels[0], 4), 1);
}

TEST(CheckItems, ClaimsOfItemsThatAreNotThereAreRefused) {
  const std::string claim = kKernel + "workgroup 0 operation 0 (claim)";
  expect_finding(damaged([](Schedule& s) { s.ops[0].k_end = 3; }), Kind::out_of_range, claim,
                 "items [0, 3); the kernel has 2");
  expect_finding(damaged([](Schedule& s) { s.ops[0].k_begin = -1; }), Kind::out_of_range, claim,
                 "items [-1, 2)");
  expect_finding(damaged([](Schedule& s) { s.ops[0].k_begin = 2; }), Kind::out_of_range, claim,
                 "items [2, 2); the kernel has 2, and a claim names at least one");
  expect_finding(damaged([](Schedule& s) { s.ops[0].value = 7; }), Kind::meaningless, claim,
                 "a claim does the one or the other");
}

TEST(CheckItems, AllClaimsFromACounterNameTheSameItems) {
  expect_finding(damaged([](Schedule& s) { s.ops[1].k_end = 1; }), Kind::meaningless,
                 kKernel + "workgroup 1 operation 0 (claim)",
                 "claims items [0, 1) from queue[0] of rank 0, but kernel 'k' rank 0 workgroup 0 operation 0 "
                 "(claim) claims items [0, 2)");
}

TEST(CheckItems, EveryItemIsInOneQueue) {
  expect_finding(
      damaged([](Schedule& s) {
        s.ops[1].index = 1;
        s.ops[1].k_begin = 1;
      }),
      Kind::meaningless, kKernel + "workgroup 1 operation 0 (claim)",
      "claims items [1, 2), of which kernel 'k' rank 0 workgroup 0 operation 0 (claim) claims items "
      "[0, 2) from another counter");
  expect_finding(damaged([](Schedule& s) { s.ops[0].k_end = s.ops[1].k_end = 1; }), Kind::meaningless,
                 kKernel + "item 1", "no workgroup of the kernel claims it");
  expect_finding(damaged([](Schedule& s) { s.ops[0].k_begin = s.ops[1].k_begin = 1; }), Kind::meaningless,
                 kKernel + "item 0", "no workgroup of the kernel claims it");
}

TEST(CheckItems, OperationsOfItemsLieBehindThoseOfWorkgroupsInOrder) {
  for (const auto& [item, first] : {std::pair{0, 0U}, {1, 2U}}) {
    expect_finding(damaged([&, i = item, f = first](Schedule& s) {
                     s.kernels[0].items[static_cast<std::size_t>(i)] = {f, 0};
                   }),
                   Kind::meaningless, kKernel + "item " + std::to_string(item), "an item lies behind them");
  }
}

TEST(CheckItems, AnItemClaimsNothing) {
  Queued s;
  const auto k = s.kernel("k", 0);
  s.workers(k, 1, 1);
  s.builder.item(k);
  s.builder.claim_items(s.queue, 1, 0, 1);
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::meaningless, kKernel + "item 0 operation 0 (claim)",
                 "an item claims nothing itself");
}

TEST(CheckItems, ItemsBelongToOneKernelThatIsLaunchedOnce) {
  Queued two;
  for (const char* name : {"k", "other"}) {
    const auto k = two.kernel(name, 0);
    two.workers(k, 1, 1);
    two.tile_item(k, 0);
    two.builder.launch(0, k);
  }
  expect_finding(two.builder.finish(), Kind::meaningless,
                 "kernel 'other' rank 0 workgroup 0 operation 0 (claim)", "items belong to one kernel");
  expect_finding(damaged([](Schedule& s) { s.host[0].push_back(s.host[0][0]); }), Kind::meaningless,
                 "host operation 1 (launch) of rank 0", "launches kernel 'k' rank 0 again, which has items");
}

TEST(CheckItems, AnItemAndWhatFollowsAClaimBeginWithAnEmptyAccumulator) {
  const auto schedule = [](bool store_in_item) {
    Queued s;
    const auto k = s.kernel("k", 0);
    s.builder.workgroup(k);
    s.compute(0);
    s.builder.claim_items(s.queue, 0, 0, 1);
    if (!store_in_item) s.store(0, 0);
    s.builder.item(k);
    if (store_in_item) s.store(0, 0);
    s.builder.launch(0, k);
    return s.builder.finish();
  };
  expect_finding(schedule(true), Kind::meaningless, kKernel + "item 0 operation 0 (store)",
                 "the accumulator is empty");
  expect_finding(schedule(false), Kind::meaningless, kKernel + "workgroup 0 operation 2 (store)",
                 "the accumulator is empty");
}

TEST(CheckItems, AQueueIsNoFlag) {
  expect_finding(damaged([](Schedule& s) {
                   s.ops[3].kind = OpKind::signal;
                   s.ops[3].flag = s.ops[0].flag;
                   s.ops[3].value = 1;
                 }),
                 Kind::meaningless, kKernel + "item 0 operation 1 (signal)", "signals queue[0] of rank 0");
}

// A workgroup writes tile 0 and signals flag 0; then two workers, of which the first `waiting` wait for the
// flag before they claim; the item loads the tile.
Schedule waits_before_claims(int waiting, int value_of_second = 1) {
  Queued s;
  const auto writer = s.kernel("writer", 0);
  s.builder.workgroup(writer);
  s.compute(0);
  s.store(0, 0);
  s.signal(0, 0);
  s.compute(1);
  s.store(1, 0);
  s.signal(0, 0);
  const auto k = s.kernel("k", 0);
  for (int i = 0; i < 2; ++i) {
    s.builder.workgroup(k);
    if (i < waiting) s.wait(0, i == 0 ? 2 : value_of_second);
    s.builder.claim_items(s.queue, 0, 0, 1);
  }
  s.builder.item(k);
  s.builder.load(s.c, SmallSchedule::tile(0), 0);
  if (value_of_second == 2) s.builder.load(s.c, SmallSchedule::tile(1), 0);
  s.builder.launch(0, writer, 0);
  s.builder.launch(0, k, 1);
  return s.builder.finish();
}

TEST(CheckItems, AnItemIsOrderedBehindWhatAllWhoMayDrawItHaveWaitedFor) {
  expect_sound(waits_before_claims(2));  // the one for 1, the other for 2: all for 1
  expect_sound(waits_before_claims(2, 2));
  expect_finding(waits_before_claims(1), Kind::unordered_read, kKernel + "item 0 operation 0 (load)",
                 "which kernel 'writer' rank 0 workgroup 0 operation 1 (store) writes");
}

// Item 0 stores tile 0; `read` gets the schedule and tells who loads it.
template <typename Read>
Schedule read_of_item(Read read) {
  Queued s;
  const auto k = s.kernel("k", 0);
  s.workers(k, 2, 2);
  s.tile_item(k, 0);
  read(s, k);
  return s.builder.finish();
}

TEST(CheckItems, NothingOrdersItemsButFlagsAndTheEndOfTheKernel) {
  const auto load = [](Queued& s) { s.builder.load(s.c, SmallSchedule::tile(0), 0); };
  // The other item, even if one workgroup may run both.
  expect_finding(read_of_item([&](Queued& s, std::int32_t k) {
                   s.builder.item(k);
                   load(s);
                   s.builder.launch(0, k);
                 }),
                 Kind::unordered_read, kKernel + "item 1 operation 0 (load)",
                 "which kernel 'k' rank 0 item 0 operation 1 (store) writes");
  expect_sound(read_of_item([&](Queued& s, std::int32_t k) {
    s.signal(0, 0);
    s.builder.item(k);
    s.wait(0);
    load(s);
    s.builder.launch(0, k);
  }));
  // What follows the claim.
  expect_finding(read_of_item([&](Queued& s, std::int32_t k) {
                   s.builder.item(k);
                   s.builder.workgroup(k);
                   s.builder.claim_items(s.queue, 0, 0, 2);
                   load(s);
                   s.builder.launch(0, k);
                 }),
                 Kind::unordered_read, kKernel + "workgroup 2 operation 1 (load)", "nothing orders");
  // The next kernel of the stream.
  expect_sound(read_of_item([&](Queued& s, std::int32_t k) {
    s.builder.item(k);
    const auto next = s.kernel("next", 0);
    s.builder.workgroup(next);
    load(s);
    s.builder.launch(0, k);
    s.builder.launch(0, next);
  }));
}

TEST(CheckItems, WhatBoundariesOrderIsKeptWithoutThem) {
  Queued s;
  const auto writer = s.kernel("writer", 0);
  for (int i = 0; i < 4; ++i) {
    s.builder.workgroup(writer);
    s.compute(i);
    s.store(i, 0);
  }
  const auto k = s.kernel("k", 0);
  s.workers(k, 2, 4);
  for (int i = 0; i < 4; ++i) {
    s.builder.item(k);
    s.builder.load(s.c, SmallSchedule::tile(i), 0);
    s.builder.store(s.a, SmallSchedule::tile(i), 0);  // what "writer" has read
  }
  s.builder.launch(0, writer);
  s.builder.launch(0, k);
  for (const std::int16_t buffer : {s.a, s.b}) s.builder.input(s.builder.whole(buffer));
  const Schedule schedule = s.builder.finish();
  expect_sound(schedule);
  const Schedule relaxed = with_tile_dependences(schedule);
  expect_sound(relaxed);
  EXPECT_EQ(relaxed.kernels[1].items.size(), 4U);
  EXPECT_EQ(relaxed.ops[relaxed.kernels[1].items[2].first_op].kind, OpKind::wait);
}

// `workers` claim items, of which each does `programs[i]` with flags; `behind` follows the claim of each.
Schedule flagged_items(int workers, const std::vector<std::vector<TinyOp>>& programs) {
  Queued s;
  const auto k = s.kernel("k", 0);
  s.workers(k, workers, static_cast<std::int32_t>(programs.size()));
  for (const auto& program : programs) {
    s.builder.item(k);
    for (const TinyOp& op : program) op.kind == OpKind::wait ? s.wait(op.index) : s.signal(op.index, 0);
  }
  s.builder.launch(0, k);
  return s.builder.finish();
}

TEST(CheckItems, AnItemThatWaitsForALaterOneNeedsAnotherWorkgroup) {
  const std::vector<std::vector<TinyOp>> programs{
      {{OpKind::wait, 0}}, {{OpKind::wait, 0}}, {{OpKind::signal, 0}}};
  expect_sound(flagged_items(3, programs));
  for (const int workers : {1, 2}) {
    expect_finding(flagged_items(workers, programs), Kind::deadlock, kKernel + "item 0 operation 0 (wait)",
                   "items of a queue are drawn in their order, and each keeps a workgroup until it ends");
  }
}

TEST(CheckItems, AnItemThatWaitsForWhatFollowsTheQueueIsRefused) {
  Queued s;
  const auto k = s.kernel("k", 0);
  s.workers(k, 2, 1);
  s.signal(0, 0);
  s.builder.item(k);
  s.wait(0);
  s.builder.launch(0, k);
  expect_finding(s.builder.finish(), Kind::deadlock, kKernel + "item 0 operation 0 (wait)", "cycle of waits");
}

TEST(CheckItems, AWorkgroupThatComesToTwoQueuesInTurnRunsBoth) {
  Queued s;
  const auto k = s.kernel("k", 0);
  for (int i = 0; i < 2; ++i) {
    s.builder.workgroup(k);
    s.builder.claim_items(s.queue, 0, 0, 1);
    s.builder.claim_items(s.queue, 1, 1, 1);
  }
  s.builder.item(k);
  s.signal(0, 0);
  s.builder.item(k);
  s.wait(0);
  s.builder.launch(0, k);
  expect_sound(s.builder.finish());
}

// Draws items in order as workgroups come free, until nobody can go on.
bool all_items_end(int workers, const std::vector<std::vector<TinyOp>>& programs) {
  std::vector<std::vector<TinyOp>> started;
  std::size_t next = 0;
  for (;;) {
    std::vector<int> counter(4, 0);
    std::size_t open = 0;
    std::vector<std::size_t> at(started.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < started.size(); ++i) {
        while (at[i] < started[i].size()) {
          const TinyOp& op = started[i][at[i]];
          if (op.kind == OpKind::wait && counter[static_cast<std::size_t>(op.index)] < 1) break;
          counter[static_cast<std::size_t>(op.index)] += op.kind == OpKind::signal ? 1 : 0;
          ++at[i];
          moved = true;
        }
      }
    }
    for (std::size_t i = 0; i < started.size(); ++i) open += at[i] < started[i].size() ? 1 : 0;
    if (next == programs.size()) return open == 0;
    if (open >= static_cast<std::size_t>(workers)) return false;
    started.push_back(programs[next++]);
  }
}

RC_GTEST_PROP(CheckItems, DeadlocksOfAQueueAreFoundExactly, ()) {
  const int workers = *rc::gen::inRange(1, 5);
  std::vector<std::vector<TinyOp>> programs(static_cast<std::size_t>(*rc::gen::inRange(1, 7)));
  for (auto& program : programs) {
    for (int ops = *rc::gen::inRange(0, 4); ops > 0; --ops) {
      program.push_back({*rc::gen::element(OpKind::wait, OpKind::signal), *rc::gen::inRange(0, 4)});
    }
  }
  const std::vector<Finding> findings = check_schedule(flagged_items(workers, programs));
  const bool ends = all_items_end(workers, programs);
  RC_CLASSIFY(ends);
  RC_ASSERT(findings.empty() == ends);
}

// The machine holds one workgroup; two claim, and the first item waits for the second.
TEST(CheckItems, WorkgroupsWithoutAPlaceDrawNothing) {
  Machine machine;
  machine.gpus_per_node = 1;
  machine.gpu.xcds = 1;
  machine.gpu.simds_per_cu = 4;
  machine.gpu.waves_per_simd = 4;
  machine.gpu.lanes_per_wave = 64;
  machine.gpu.registers_per_cu = 4 * 512 * 64;
  machine.gpu.registers_per_thread_max = 512;
  machine.gpu.lds_bytes_per_cu = machine.gpu.lds_bytes_per_workgroup_max = 65536;
  Queued s;
  Kernel kernel;
  kernel.name = "k";
  kernel.resources = {256, 16, 65536};
  const auto k = s.builder.kernel(kernel);
  s.workers(k, 2, 2);
  s.builder.item(k);
  s.wait(0);
  s.builder.item(k);
  s.signal(0, 0);
  s.builder.launch(0, k);
  const Schedule schedule = s.builder.finish();
  expect_sound(schedule);
  for (const int units : {1, 2}) {
    machine.gpu.cus_per_xcd = units;
    const auto findings = check_schedule_on(schedule, machine);
    EXPECT_EQ(findings.size(), units == 1 ? 1U : 0U) << text_of(findings);
    if (units > 1) continue;
    EXPECT_EQ(findings[0].kind, Kind::resources);
    EXPECT_NE(findings[0].where.find("workgroup 1"), std::string::npos) << text_of(findings);
  }
}

}  // namespace
}  // namespace tritax
