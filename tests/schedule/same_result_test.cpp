// Orders that compute something else are refused, each for its own reason; those beside them are not.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/builder.hpp"
#include "model/schedule/same_result.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

using Places = std::vector<std::uint32_t>;  // which operation of the start stands at each place

// What the law says of the first operations of a schedule in another order; the others stay.
std::string order_fault(const Schedule& start, Places places) {
  static const Machine machine = find_machine("mi300x-8");
  Schedule moved = start;
  for (auto i = static_cast<std::uint32_t>(places.size()); i < start.ops.size(); ++i) places.push_back(i);
  for (std::size_t i = 0; i < places.size(); ++i) moved.ops[i] = start.ops[places[i]];
  return SameResult(start, machine).fault(moved, places);
}

void expect_order_refused(const Schedule& start, const Places& places, const std::string& part) {
  const std::string fault = order_fault(start, places);
  EXPECT_NE(fault, "");
  EXPECT_NE(fault.find(part), std::string::npos) << "'" << fault << "' lacks '" << part << "'";
}

// Two heads of 16 queries against 16 keys, of 16 columns, in one workgroup; and a partial of each.
struct Attending {
  ScheduleBuilder builder{"attends", 1};
  std::int16_t q = builder.buffer({"Q", DType::fp16, 32, 16, 16, 16});
  std::int16_t k = builder.buffer({"K", DType::fp16, 16, 16, 16, 16});
  std::int16_t v = builder.buffer({"V", DType::fp16, 16, 16, 16, 16});
  std::int16_t partial = builder.buffer({"partial", DType::fp32, 32, 17, 16, 17});
  std::int16_t o = builder.buffer({"O", DType::fp16, 32, 16, 16, 16});
  static Rect rows(int i, int cols) { return {16 * i, 0, 16, cols}; }
  void attend(int i) { builder.attend(q, rows(i, 16), k, v, 0, 0, 16); }
  void combine(int i) { builder.combine(partial, rows(i, 17), 0); }
  void store(int i) { builder.store(o, rows(i, 16), 0); }
};

template <typename Add>
Schedule attending(Add add) {
  Attending s;
  Kernel kernel;
  kernel.name = "attend";
  kernel.tile = {16, 16, 16, 4, Pipeline::serial};
  const std::int32_t id = s.builder.kernel(kernel);
  s.builder.workgroup(id);
  add(s);
  s.builder.launch(0, id);
  s.builder.host(0, HostOpKind::device_synchronize);
  return s.builder.finish();
}

TEST(SameResult, AStoreStaysBehindTheAttendThatItWritesOut) {
  const Schedule start = attending([](Attending& s) {
    for (int i = 0; i < 2; ++i) {
      s.attend(i);
      s.store(i);
    }
  });
  EXPECT_EQ(order_fault(start, {2, 3, 0, 1}), "");  // the other head first
  expect_order_refused(start, {1, 0, 2, 3}, "accumulator");
  expect_order_refused(start, {0, 2, 1, 3}, "accumulator");
}

TEST(SameResult, APartialIsMergedBeforeTheStoreThatHasIt) {
  const Schedule start = attending([](Attending& s) {
    s.attend(0);
    s.combine(0);
    s.combine(1);
    s.store(0);
  });
  EXPECT_EQ(order_fault(start, {0, 2, 1, 3}), "");
  expect_order_refused(start, {0, 1, 3, 2}, "accumulator");
  expect_order_refused(start, {0, 3, 1, 2}, "accumulator");
}

TEST(SameResult, ASparseProductIsStoredBeforeTheNextReplacesIt) {
  ScheduleBuilder builder("sparse", 1);
  auto matrix = std::make_shared<SparseMatrix>();
  matrix->rows = 32;
  matrix->cols = 4;
  for (std::int32_t row = 0; row < 32; ++row) {
    matrix->offsets.push_back(row);
    matrix->columns.push_back(row % 4);
  }
  matrix->offsets.push_back(32);
  const std::int16_t sparse = builder.sparse(std::move(matrix));
  const std::int16_t values = builder.buffer({"values", DType::fp32, 1, 32, 1, 32});
  const std::int16_t x = builder.buffer({"x", DType::fp32, 4, 1, 4, 1});
  const std::int16_t y = builder.buffer({"y", DType::fp32, 32, 1, 16, 1});
  Kernel kernel;
  kernel.name = "spmv";
  const std::int32_t id = builder.kernel(kernel);
  builder.workgroup(id);
  for (std::int32_t i = 0; i < 2; ++i) {
    builder.sparse_product(sparse, values, x, {16 * i, 16, 16 * i, 16 * i + 16}, LaneSharing::row);
    builder.store(y, {16 * i, 0, 16, 1}, 0);
  }
  builder.launch(0, id);
  const Schedule start = builder.finish();
  EXPECT_EQ(order_fault(start, {2, 3, 0, 1}), "");
  expect_order_refused(start, {0, 2, 1, 3}, "accumulator");
  expect_order_refused(start, {1, 0, 2, 3}, "accumulator");
}

// Whoever reads the tile stands in another kernel, behind both.
TEST(SameResult, OfTwoStoresOfAWorkgroupToOneTileTheLastStaysTheLast) {
  const auto start = [](int second_row) {
    return one_workgroup([&](SmallSchedule& s) {
      for (int i = 0; i < 2; ++i) {
        s.compute(i);
        s.builder.store(s.c, {i * second_row, 0, 256, 256}, 1);
      }
    });
  };
  EXPECT_EQ(order_fault(start(256), {2, 3, 0, 1}), "");
  expect_order_refused(start(0), {2, 3, 0, 1}, "same tile");
  expect_order_refused(start(128), {2, 3, 0, 1}, "same tile");
}

TEST(SameResult, SumsInMemoryMayComeInAnyOrderButStayBehindAStore) {
  const auto start = [](bool stores) {
    return one_workgroup([&](SmallSchedule& s) {
      for (int i = 0; i < 3; ++i) {
        s.compute(i);
        if (i == 0 && stores) {
          s.store(0, 1);
        } else {
          s.builder.atomic_add(s.c, SmallSchedule::tile(0), 1);
        }
      }
    });
  };
  EXPECT_EQ(order_fault(start(false), {2, 3, 0, 1, 4, 5}), "");
  expect_order_refused(start(true), {2, 3, 0, 1, 4, 5}, "");
}

TEST(SameResult, ALoadStaysBeforeTheStoreThatReplacesWhatItReads) {
  const Schedule start = one_workgroup([](SmallSchedule& s) {
    for (const std::int16_t buffer : {s.a, s.b}) s.builder.input(s.builder.whole(buffer));
    s.builder.load(s.a, {0, 0, 256, 256}, 0);
    s.store(0, 1);
    s.compute(1);
    s.builder.store(s.a, {0, 0, 256, 256}, 0);
  });
  expect_order_refused(start, {2, 3, 0, 1}, "");
}

TEST(SameResult, ARelaxedSignalEndsNotWhatTheNextReleasePublishes) {
  const Schedule start = one_workgroup([](SmallSchedule& s) {
    s.compute(0);
    s.store(0, 1);
    s.builder.signal(s.ready, 0, 1, 0, Scope::gpu, kPlain, MemoryOrder::relaxed);
    s.store(1, 1);
    s.signal(1, 1, 1, Scope::system);
  });
  EXPECT_EQ(order_fault(start, {0, 2, 1, 3, 4}), "");
  EXPECT_EQ(order_fault(start, {0, 3, 2, 1, 4}), "");
  expect_order_refused(start, {0, 2, 3, 4, 1}, "comes before what it publishes");
}

TEST(SameResult, ASignalThatSetsItsFlagLastStaysTheLast) {
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.builder.set_flag(s.ready, 0, 1, 0, Scope::gpu, kPlain);
  s.builder.set_flag(s.ready, 0, 2, 0, Scope::gpu, kPlain);
  s.builder.workgroup(k);
  s.wait(0, 2);
  s.compute(0);
  s.store(0, 0);
  s.builder.launch(0, k);
  expect_order_refused(s.builder.finish(), {1, 0}, "");
}

// Whoever comes first skips nothing: of three workgroups each tile has one that computes it.
TEST(SameResult, WhatAClaimSkipsIsCountedByPlace) {
  SmallSchedule s(1);
  const auto queue = s.builder.flags("queue", 2);
  const auto k = s.kernel("k", 0);
  for (int w = 0; w < 3; ++w) {
    s.builder.workgroup(k);
    for (int i = 0; i < 2; ++i) {
      s.builder.claim(queue, i, 1, 2);
      s.compute(i);
      s.store(i, 0);
    }
  }
  s.builder.launch(0, k);
  const Schedule start = s.builder.finish();
  expect_order_refused(start, {3, 1, 2, 0, 4, 5}, "skips");
  expect_order_refused(start, {0, 4, 5, 3, 1, 2}, "skips");
}

TEST(SameResult, NothingOfTheAccumulatorOutlivesItems) {
  SmallSchedule s(1);
  const auto queue = s.builder.flags("queue", 1);
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.compute(0);
  s.store(0, 0);
  s.builder.claim_items(queue, 0, 0, 2);
  for (int i = 1; i < 3; ++i) {
    s.builder.item(k);
    s.compute(i);
    s.store(i, 0);
  }
  s.builder.launch(0, k);
  const Schedule start = s.builder.finish();
  EXPECT_EQ(order_fault(start, {2, 0, 1}), "");
  expect_order_refused(start, {0, 2, 1}, "");
  expect_order_refused(start, {0, 1, 2, 4, 3}, "");  // in an item
}

}  // namespace
}  // namespace tritax
