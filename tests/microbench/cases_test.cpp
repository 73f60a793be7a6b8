#include "model/microbench/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/microbench/schedules.hpp"
#include "model/schedule/check.hpp"

namespace tritax {
namespace {

std::string key_of(const MicrobenchRow& row) {
  return row.group + ',' + row.name + ',' + row.parameter_text();
}

TEST(PlainGemm, ExpectsTheProductOfItsOwnOperandsOnEveryRank) {
  PlainGemm gemm;
  gemm.m = 300;
  gemm.n = 200;
  gemm.k = 72;
  const Schedule schedule = plain_gemm(gemm, 16, 2);
  EXPECT_TRUE(check_schedule(schedule).empty());
  ASSERT_EQ(schedule.reference.size(), 2U);
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    const ReferenceOp& op = schedule.reference[static_cast<std::size_t>(rank)];
    EXPECT_EQ(op.to.rank, rank);
    EXPECT_EQ(op.a.rank, rank);
    EXPECT_EQ(op.b.rank, rank);
    ASSERT_EQ(expected_on(schedule, rank).size(), 1U);
    EXPECT_EQ(expected_on(schedule, rank)[0].rect.rows, 300);
    EXPECT_EQ(expected_on(schedule, rank)[0].rect.cols, 200);
  }
}

TEST(MicrobenchCases, EveryRowHasANameOfItsOwn) {
  for (const auto& [gpus, compute_units] : {std::pair{4, 132}, std::pair{8, 304}, std::pair{1, 16}}) {
    std::set<std::string> seen;
    for (const Microbench& bench : microbenchmarks(gpus, compute_units)) {
      ASSERT_FALSE(bench.rows.empty());
      for (const MicrobenchRow& row : bench.rows) {
        EXPECT_TRUE(seen.insert(key_of(row)).second) << key_of(row);
      }
    }
  }
}

TEST(MicrobenchCases, NamesAndParametersFitACsvFile) {
  for (const Microbench& bench : microbenchmarks(4, 132)) {
    for (const MicrobenchRow& row : bench.rows) {
      for (const std::string& text : {row.group, row.name, row.parameter_text(), row.unit}) {
        EXPECT_FALSE(text.empty()) << key_of(row);
        EXPECT_EQ(text.find_first_of(",\n\"#"), std::string::npos) << text;
      }
    }
  }
}

TEST(MicrobenchCases, ComeGroupByGroupAndEveryGroupHasSome) {
  std::vector<std::string> order;
  for (const Microbench& bench : microbenchmarks(4, 132)) {
    if (order.empty() || order.back() != bench.rows.front().group) order.push_back(bench.rows.front().group);
    for (const MicrobenchRow& row : bench.rows) EXPECT_EQ(row.group, bench.rows.front().group);
  }
  EXPECT_EQ(order, std::vector<std::string>(kMicrobenchGroups.begin(), kMicrobenchGroups.end()));
}

TEST(MicrobenchCases, NeedNoMoreGpusThanThereAre) {
  for (const Microbench& bench : microbenchmarks(1, 64)) EXPECT_EQ(bench.gpus, 1);
  const auto benches = microbenchmarks(2, 64);
  EXPECT_TRUE(std::any_of(benches.begin(), benches.end(), [](const auto& bench) { return bench.gpus == 2; }));
  for (const Microbench& bench : benches) EXPECT_LE(bench.schedule().ranks, 2);
}

TEST(MicrobenchCases, GuardedCopiesFollowAWaitEachAndRaggedOnesBeginWhereTheySay) {
  int guarded = 0, ragged = 0;
  for (const Microbench& bench : microbenchmarks(2, 64)) {
    const MicrobenchRow& row = bench.rows.front();
    if (row.group != "guarded" && row.group != "ragged") continue;
    const Schedule schedule = bench.schedule();
    std::set<int> flags;
    int waits = 0;
    for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
      const Op& op = schedule.ops[i];
      if (op.kind != OpKind::copy) continue;
      if (row.group == "guarded") {
        ++guarded;
        ASSERT_TRUE(i > 0 && schedule.ops[i - 1].kind == OpKind::wait) << key_of(row);
        flags.insert(schedule.ops[i - 1].index);
        ++waits;
      } else {
        ++ragged;
        ASSERT_EQ(op.rect.col % op.rect.cols, row.number("first column")) << key_of(row);
        ASSERT_EQ(op.src_col, op.rect.col) << key_of(row);
      }
    }
    // In a matrix every tile has a flag of its own on each GPU that copies, else all have one.
    const bool in_matrix = !row.text("tile").empty();
    const int senders = row.text("traffic") == "all-rotated" ? 2 : 1;
    if (row.group == "guarded") {
      EXPECT_EQ(static_cast<int>(flags.size()), in_matrix ? waits / senders : 1) << key_of(row);
    }
  }
  EXPECT_GT(guarded, 0);
  EXPECT_GT(ragged, 0);
}

// The product is launched first, on a stream of its own, and no compute unit is asked for twice.
TEST(MicrobenchCases, TilesFromMemoryBesideAProductHaveComputeUnitsOfTheirOwn) {
  constexpr int kComputeUnits = 64;
  int seen = 0;
  for (const Microbench& bench : microbenchmarks(1, kComputeUnits)) {
    const MicrobenchRow& row = bench.rows.front();
    if (row.group != "busy-stream") continue;
    ++seen;
    const Schedule schedule = bench.schedule();
    ASSERT_EQ(schedule.kernels.size(), 2u) << key_of(row);
    const Kernel& product = schedule.kernels[0];
    const Kernel& tiles = schedule.kernels[static_cast<std::size_t>(row.kernel)];
    EXPECT_EQ(product.workgroups.size(), row.number("products")) << key_of(row);
    EXPECT_EQ(tiles.workgroups.size(), row.number("workgroups")) << key_of(row);
    EXPECT_EQ(std::pair(tiles.tile.m, tiles.tile.n), tile_of(row.name)) << key_of(row);
    EXPECT_LE(product.workgroups.size() + tiles.workgroups.size(), kComputeUnits) << key_of(row);
    std::vector<std::pair<int, int>> launched;
    for (const HostOp& op : schedule.host[0]) {
      if (op.kind == HostOpKind::launch) launched.emplace_back(op.kernel, op.stream);
    }
    ASSERT_EQ(launched.size(), 2u) << key_of(row);
    EXPECT_EQ(launched[0].first, 0) << key_of(row);
    EXPECT_NE(launched[0].second, launched[1].second) << key_of(row);
  }
  EXPECT_GT(seen, 0);
}

TEST(MicrobenchCases, CopiesBesideAProductLeaveItComputeUnitsOfItsOwn) {
  constexpr int kComputeUnits = 64;
  int seen = 0;
  for (const Microbench& bench : microbenchmarks(2, kComputeUnits)) {
    const MicrobenchRow& row = bench.rows.front();
    if (row.group != "beside") continue;
    ++seen;
    const Schedule schedule = bench.schedule();
    ASSERT_EQ(schedule.kernels.size(), 3u) << key_of(row);
    const Kernel& product = schedule.kernels[1];
    const Kernel& copies = schedule.kernels[static_cast<std::size_t>(row.kernel)];
    EXPECT_EQ(product.workgroups.size(), row.number("products")) << key_of(row);
    EXPECT_EQ(std::pair(product.tile.m, product.tile.n), tile_of(row.text("product tile"))) << key_of(row);
    EXPECT_EQ(copies.workgroups.size(), row.number("workgroups")) << key_of(row);
    EXPECT_LE(product.workgroups.size() + copies.workgroups.size(), kComputeUnits) << key_of(row);
    EXPECT_EQ(product.rank, copies.rank) << key_of(row);
    for (const Workgroup& workgroup : copies.workgroups) {
      for (std::uint32_t i = workgroup.first_op; i < workgroup.first_op + workgroup.op_count; ++i) {
        if (schedule.ops[i].kind != OpKind::copy) continue;
        ASSERT_EQ(schedule.ops[i - 1].kind, OpKind::wait) << key_of(row);
      }
    }
  }
  EXPECT_GT(seen, 0);
}

TEST(MicrobenchCases, ColdCopiesComeAloneOrBehindAMatmulInTheSameStream) {
  int alone = 0, behind = 0;
  for (const Microbench& bench : microbenchmarks(2, 64)) {
    const MicrobenchRow& row = bench.rows.front();
    if (row.group != "cold" || row.text("traffic").empty()) continue;
    const Schedule schedule = bench.schedule();
    const bool follows = row.name == "copy-out behind a matmul";
    ++(follows ? behind : alone);
    std::vector<std::pair<bool, int>> launches;  // whether with matmuls, and the stream
    for (const HostOp& op : schedule.host[0]) {
      if (op.kind != HostOpKind::launch) continue;
      launches.emplace_back(schedule.kernels[static_cast<std::size_t>(op.kernel)].tile.m > 0, op.stream);
    }
    if (follows) {
      EXPECT_EQ(launches, (std::vector<std::pair<bool, int>>{{true, 0}, {false, 0}})) << key_of(row);
    } else {
      EXPECT_EQ(launches, (std::vector<std::pair<bool, int>>{{false, 0}})) << key_of(row);
    }
  }
  EXPECT_EQ(alone, 4);
  EXPECT_EQ(behind, 4);
}

TEST(MicrobenchCases, StoresGoWhereAProductInAMatrixOfSoManyColumnsWouldPutThem) {
  int seen = 0;
  for (const Microbench& bench : microbenchmarks(4, 64)) {
    const MicrobenchRow& row = bench.rows.front();
    if (row.group != "stores") continue;
    ++seen;
    const Schedule schedule = bench.schedule();
    const auto& c = schedule.buffers.back();
    EXPECT_EQ(c.cols, row.number("columns"));
    std::set<std::pair<int, int>> places;
    std::int64_t bytes = 0;
    for (const Op& op : schedule.ops) {
      if (op.kind != OpKind::store) continue;
      places.insert({op.rect.row, op.rect.col});
      bytes += std::int64_t{2} * op.rect.rows * op.rect.cols;
      ASSERT_LE(op.rect.row + op.rect.rows, c.rows) << key_of(row);
      ASSERT_LE(op.rect.col + op.rect.cols, c.cols) << key_of(row);
    }
    const std::int64_t senders = row.text("traffic") == "one-pair" ? 1 : row.number("gpus");
    EXPECT_EQ(bytes, senders * row.number("bytes")) << key_of(row);
    EXPECT_EQ(static_cast<std::int64_t>(places.size()), 60 * row.number("workgroups")) << key_of(row);
  }
  EXPECT_GT(seen, 0);
}

TEST(MicrobenchCases, TheValueFollowsFromTheTime) {
  for (const Microbench& bench : microbenchmarks(2, 132)) {
    for (const MicrobenchRow& row : bench.rows) {
      const double value = row.value(1000, 1.7, 0.03);
      if (row.unit == "GHz") {
        EXPECT_EQ(value, 1.7);
      } else if (row.unit == "share") {
        EXPECT_EQ(value, 0.03);
      } else if (row.unit == "GB/s" && !row.text("bytes").empty()) {
        EXPECT_NEAR(value, static_cast<double>(row.number("bytes")) / 1e-3 * 1e-9, 1e-9 * value)
            << key_of(row);
      } else if (row.name == "host barrier" || row.unit == "us/kernel") {
        EXPECT_LE(value, 1000) << key_of(row);
      }
    }
  }
}

}  // namespace
}  // namespace tritax
