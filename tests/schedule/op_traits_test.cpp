#include "model/schedule/op_traits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace tritax {
namespace {

Op copy_op() {
  Op op;
  op.kind = OpKind::copy;
  op.rank = 1;
  op.buffer = 4;
  op.rect = {8, 16, 2, 3};
  op.src_rank = 2;
  op.src_buffer = 5;
  op.src_row = 10;
  op.src_col = 20;
  return op;
}

std::vector<Region> reads_of(const Op& op, std::int32_t own_rank) {
  std::vector<Region> regions;
  for_each_read(op, own_rank, [&](const Region& region) { regions.push_back(region); });
  return regions;
}

bool same(const Region& a, const Region& b) {
  return a.buffer == b.buffer && a.rank == b.rank && contains(a.rect, b.rect) && contains(b.rect, a.rect);
}

TEST(OpTraits, NamesAreDifferent) {
  EXPECT_EQ(std::set(kOpKindNames.begin(), kOpKindNames.end()).size(), kOpTraits.size());
  EXPECT_EQ(std::set(kHostOpKindNames.begin(), kHostOpKindNames.end()).size(), kHostOpTraits.size());
}

TEST(OpTraits, WhatWritesNeedsATileAndWaitsForTheStoreBefore) {
  for (const OpTraits& row : kOpTraits) {
    if (row.writes == Writes::nothing) continue;
    EXPECT_TRUE(row.order.drains) << row.name;
    EXPECT_EQ(row.order.loads, !is_asynchronous(row.kind))
        << row.name;                                    // nobody waits for what is asynchronous
    if (row.kind == OpKind::attend_backward) continue;  // its sums are where its queries are
    EXPECT_TRUE(row.fields.contains(OpField::tile) && row.fields.contains(OpField::to)) << row.name;
  }
}

TEST(OpTraits, WhatFillsTheAccumulatorReadsAndIsWaitedFor) {
  for (const OpTraits& row : kOpTraits) {
    if (fills_accumulator(row.kind)) {
      EXPECT_TRUE(row.reads != Reads::nothing && row.order.loads) << row.name;
    }
  }
}

TEST(OpTraits, ACopyReadsItsSourceAndReplacesItsTile) {
  const Op op = copy_op();
  const std::vector<Region> reads = reads_of(op, 0);
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_TRUE(same(reads[0], {5, 2, {10, 20, 2, 3}}));
  int writes = 0;
  for_each_write(op, [&](const Region& region, bool adds) {
    ++writes;
    EXPECT_FALSE(adds);
    EXPECT_TRUE(same(region, {4, 1, {8, 16, 2, 3}}));
  });
  EXPECT_EQ(writes, 1);
}

TEST(OpTraits, AMatmulReadsRowsOfAAndColumnsOfBOnItsOwnRank) {
  Op op;
  op.kind = OpKind::matmul;
  op.src_buffer = 1;
  op.b_buffer = 2;
  op.rect = {32, 64, 16, 8};
  op.k_begin = 100;
  op.k_end = 140;
  const std::vector<Region> reads = reads_of(op, 3);
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_TRUE(same(reads[0], {1, 3, {32, 100, 16, 40}}));
  EXPECT_TRUE(same(reads[1], {2, 3, {100, 64, 40, 8}}));
  for_each_write(op, [](const Region&, bool) { FAIL() << "only the accumulator changes"; });
}

TEST(OpTraits, AnAtomicAdditionAddsOntoItsTile) {
  Op op = copy_op();
  op.kind = OpKind::atomic_add;
  EXPECT_TRUE(reads_of(op, 0).empty());
  bool added = false;
  for_each_write(op, [&](const Region&, bool adds) { added = adds; });
  EXPECT_TRUE(added);
}

TEST(OpTraits, AllKernelsOfAHostProgramAreVisitedInOrder) {
  Schedule schedule;
  schedule.graphs.push_back({{4, 1}, {2, 0}});
  std::vector<HostOp> program(3);
  program[0].kind = HostOpKind::launch;
  program[0].kernel = 7;
  program[0].stream = 3;
  program[2].kind = HostOpKind::graph_launch;
  program[2].graph = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> seen;
  for_each_launch(schedule, program,
                  [&](const GraphNode& node) { seen.emplace_back(node.kernel, node.stream); });
  EXPECT_EQ(seen, (std::vector<std::pair<std::int32_t, std::int32_t>>{{7, 3}, {4, 1}, {2, 0}}));
}

}  // namespace
}  // namespace tritax
