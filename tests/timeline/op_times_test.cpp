// Times of operations: every kind counted as the header says, on simulated and measured timelines alike.
#include "model/timeline/op_times.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "model/core/error.hpp"
#include "model/timeline/op_table.hpp"
#include "tests/timeline/small_timeline.hpp"

namespace tritax {
namespace {

OpTimes find(const std::vector<OpTimes>& all, OpKind kind, bool remote) {
  for (const OpTimes& times : all) {
    if (times.group.kind == kind && times.group.remote == remote) return times;
  }
  ADD_FAILURE() << "no such group";
  return {};
}

TEST(OpTimes, AreCountedByKernelKindSideAndSize) {
  const std::vector<OpTimes> all = op_times(test::measured_tiles(), test::tile_to_both());
  ASSERT_EQ(all.size(), 5u);
  const OpTimes matmul = find(all, OpKind::matmul, false);
  EXPECT_EQ(matmul.group.kernel, "gemm");
  EXPECT_EQ(matmul.group.size, "4x4x16");
  EXPECT_EQ(matmul.count, 2);
  EXPECT_DOUBLE_EQ(matmul.median_us, 4);
  EXPECT_DOUBLE_EQ(matmul.sum_us, 8);
  EXPECT_EQ(find(all, OpKind::store, true).group.size, "4x4");
  EXPECT_EQ(find(all, OpKind::wait, false).group.size, "");
  EXPECT_DOUBLE_EQ(find(all, OpKind::wait, false).median_us, 7.1);
  const OpTimes signal = find(all, OpKind::signal, true);
  EXPECT_DOUBLE_EQ(signal.median_us, 0.6);
  EXPECT_DOUBLE_EQ(signal.p10_us, 0.52);  // a tenth of the way from 0.5 to 0.7
  EXPECT_DOUBLE_EQ(signal.p90_us, 0.68);
}

TEST(OpTimes, OfStoresThatOverlapCountFromTheEndOfTheOneBefore) {
  const std::vector<OpTimes> all = op_times(test::measured_tiles(), test::tile_to_both());
  // 4100 to 5000, 11700 to 12500; then 5000 to 7000, 12500 to 15000.
  EXPECT_DOUBLE_EQ(find(all, OpKind::store, false).sum_us, 0.9 + 0.8);
  EXPECT_DOUBLE_EQ(find(all, OpKind::store, true).sum_us, 2.0 + 2.5);
}

RC_GTEST_PROP(OpTimes, OfARunOfStoresAddUpToItsSpanHoweverTheyOverlap, ()) {
  Timeline timeline;
  double begin = 0;
  double end = 0;
  const int stores = *rc::gen::inRange(1, 8);
  for (int i = 0; i < stores; ++i) {
    begin += i == 0 ? 0 : *rc::gen::inRange(0, 50);
    begin = i == 0 ? 0 : std::min(begin, end);  // each begins before the one before it has ended
    end = std::max(begin, end) + *rc::gen::inRange(0, 100);
    timeline.ops.push_back({{0, 0, static_cast<std::uint32_t>(i), 0, 0}, OpKind::store, 0, begin, end});
  }
  const std::vector<double> begins = service_begins(timeline);
  double sum = 0;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    RC_ASSERT(begins[i] <= timeline.ops[i].end_ns);
    sum += timeline.ops[i].end_ns - begins[i];
  }
  RC_ASSERT(std::abs(sum - end) < 1e-9);
}

TEST(OpTable, ReadsWhatItWrites) {
  MeasuredOps row;
  row.id = "one/fused-sequential";
  row.pattern = "fused-sequential";
  row.gpus = 4;
  row.times.group = {"gemm", OpKind::store, true, "128x256"};
  row.times.count = 1024;
  row.times.median_us = 2.5;
  row.times.p10_us = 2.25;
  row.times.p90_us = 3.125;
  row.times.sum_us = 2600;
  row.device_us = 101.5;
  row.stamped_device_us = 110.25;
  row.flush_bytes = 256e6;
  MeasuredOps flag = row;
  flag.times.group = {"gemm", OpKind::wait, false, ""};
  const MeasuredOpsFile file = parse_op_table("# 2026-11-21, NVIDIA H200 x 4\n" + op_table_header() + "\n" +
                                                  op_table_row(row) + "\n" + op_table_row(flag) + "\n",
                                              "ops.csv");
  EXPECT_EQ(file.remarks.at(0), "2026-11-21, NVIDIA H200 x 4");
  ASSERT_EQ(file.rows.size(), 2u);
  const MeasuredOps& read = file.rows[0];
  EXPECT_EQ(read.id, row.id);
  EXPECT_EQ(read.gpus, 4);
  EXPECT_EQ(read.times.group, row.times.group);
  EXPECT_EQ(read.times.count, 1024);
  EXPECT_DOUBLE_EQ(read.times.p90_us, 3.125);
  EXPECT_DOUBLE_EQ(read.times.sum_us, 2600);
  EXPECT_DOUBLE_EQ(read.stamped_device_us, 110.25);
  EXPECT_EQ(read.flush_bytes, 256e6);
  EXPECT_EQ(read.where, "ops.csv:3");
  EXPECT_EQ(file.rows[1].times.group, flag.times.group);
}

TEST(OpTable, RefusesBadValuesWithLineColumnAndWhatIsAllowed) {
  const std::string good = "s,p,2,gemm,store,remote,8x8,5,2,1,3,10,20,21,0";
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& words) {
    std::string row = good;
    row.replace(row.find(from), from.size(), to);
    try {
      parse_op_table(op_table_header() + "\n" + row + "\n", "ops.csv");
      ADD_FAILURE() << row;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("ops.csv:2"), std::string::npos) << error.what();
    }
  };
  EXPECT_EQ(parse_op_table(op_table_header() + "\n" + good + "\n", "ops.csv").rows.size(), 1u);
  refused("store", "stroe", "'operation': 'stroe'");
  refused("remote", "far", "'side': 'far' is not allowed; allowed: local, remote");
  refused(",5,", ",0,", "'count': '0'");
  refused(",2,1,3,", ",4,1,3,", "'median_us': '4'");
  refused(",10,", ",inf,", "'sum_us': 'inf'");
  refused(",20,", ",0,", "'device_us': '0'");
  refused(",21,0", ",21,x", "'flush_bytes': 'x'");
  refused(",21", "", "14 fields");
}

}  // namespace
}  // namespace tritax
