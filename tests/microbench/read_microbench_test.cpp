#include "model/microbench/read_microbench.hpp"

#include <gtest/gtest.h>

#include <string>

#include "model/core/error.hpp"

namespace tritax {
namespace {

const std::string kHead =
    "# 2026-11-21, some GPU x 2\n"
    "group,name,parameters,value,unit,time_us,time_p10_us,time_p90_us,runs\n";
const std::string kRow = "launch,stream,kernels=2;workgroups=1,12.19,us/kernel,24.377,22.295,27.767,20\n";

MicrobenchTable parse(const std::string& rows) { return parse_microbench(kHead + rows, "m.csv", 2, 132); }

std::string message(const std::string& rows) {
  try {
    parse(rows);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

void expect_says(const std::string& rows, std::initializer_list<std::string_view> words) {
  const std::string text = message(rows);
  for (const std::string_view word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' is missing in: " << text;
  }
}

TEST(ReadMicrobench, FindsTheScheduleBehindARow) {
  const MicrobenchTable table = parse(kRow);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.place, "2026-11-21, some GPU x 2");
  const MeasuredMicrobench& row = table.rows[0];
  EXPECT_EQ(row.time_us, 24.377);
  EXPECT_EQ(row.value, 12.19);
  EXPECT_EQ(row.runs, 20);
  EXPECT_EQ(table.row(row).metric, MicrobenchMetric::wall_time);
  EXPECT_EQ(table.row(row).number("kernels"), 2);
  EXPECT_EQ(table.benches[row.bench].schedule().host[0].size(), 3u);
}

TEST(ReadMicrobench, NamesPlaceValueAndWhatIsAllowed) {
  expect_says("lunch,stream,kernels=2;workgroups=1,1,us/kernel,2,2,2,20\n",
              {"m.csv:3", "group", "'lunch'", "launch, barrier"});
  expect_says(
      "launch,steam,kernels=2;workgroups=1,1,us/kernel,2,2,2,20\n",
      {"m.csv:3", "name", "'steam'", "around a graph step, around a step, graph, graph step, step, stream"});
  expect_says(
      "launch,stream,kernels=3;workgroups=1,1,us/kernel,2,2,2,20\n",
      {"m.csv:3", "parameters", "'kernels=3;workgroups=1'", "132 compute units", "'kernels=1;workgroups=1'"});
  expect_says("launch,stream,kernels=2;workgroups=1,1,us/kernel,0,2,2,20\n",
              {"m.csv:3", "time_us", "'0'", "above 0"});
  expect_says("launch,stream,kernels=2;workgroups=1,1,us/kernel,3,4,5,20\n",
              {"m.csv:3", "time_us", "'3'", "median"});
  expect_says("launch,stream,kernels=2;workgroups=1,1,us/kernel,4,4,5,many\n", {"m.csv:3", "runs", "'many'"});
}

TEST(ReadMicrobench, RefusesRowsThatComeTwiceAndFilesWithoutRows) {
  expect_says(kRow + kRow, {"m.csv:4", "once", "m.csv:3"});
  expect_says("", {"m.csv:2", "the file ends behind its column names"});
}

TEST(ReadMicrobench, RefusesRowsThatNeedMoreGpus) {
  expect_says("barrier,host barrier,ranks=4,0.6,us,644,614,691,10\n", {"m.csv:3", "'ranks=4'", "2 GPUs"});
}

TEST(ReadMicrobench, ReadsTheStoredFile) {
  const std::string stored = std::string(TRITAX_SOURCE_DIR) + "/scenarios/measured/h200-4-microbench.csv";
  EXPECT_GT(read_microbench(stored, 4, 132).rows.size(), 500u);
}

// Of several nodes, say; but not the same file again.
TEST(ReadMicrobench, TakesMeasurementsOfOneMicrobenchmarkFromSeveralFiles) {
  const std::string folder = std::string(TRITAX_SOURCE_DIR) + "/scenarios/measured/";
  const std::string first = folder + "h200-4-microbench.csv";
  const std::string second = folder + "h200-2-launch.csv";
  const std::size_t of_first = read_microbench(first, 4, 132).rows.size();
  const std::size_t of_second = read_microbench(second, 4, 132).rows.size();
  EXPECT_EQ(read_microbench({first, second}, 4, 132).rows.size(), of_first + of_second);
  try {
    read_microbench({first, second, second}, 4, 132);
    ADD_FAILURE() << "a file was taken twice";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("h200-2-launch.csv: launch stream"), std::string::npos);
  }
}

}  // namespace
}  // namespace tritax
