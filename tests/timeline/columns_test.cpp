// The columns of a timeline hold all of its entries.
#include "model/timeline/columns.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/timeline/small_timeline.hpp"

namespace tritax {
namespace {

using nlohmann::ordered_json;

// What `base64` wrote.
std::string bytes_of(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned word = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    word = word << 6 | static_cast<unsigned>(digits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(word >> bits & 255);
  }
  return bytes;
}

template <typename T>
std::vector<T> numbers_of(const ordered_json& column) {
  const std::string bytes = bytes_of(column["base64"]);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

Machine two_gpus_of_ten_cus() {
  Machine machine;
  machine.gpus_per_node = 2;
  machine.gpu.xcds = 2;
  machine.gpu.cus_per_xcd = 5;
  machine.fabric.link_raw_gb_per_s = 64;
  return machine;
}

ordered_json columns_of(const Timeline& timeline, const ColumnOptions& options = {}) {
  const Machine machine = two_gpus_of_ten_cus();
  return timeline_columns(timeline, test::tile_to_both(), machine, build_topology(machine, 2), options);
}

TEST(Columns, HoldEveryIntervalByTrackAndTime) {
  const ordered_json json = columns_of(test::measured_tiles());
  EXPECT_EQ(json["end"], 15700);
  EXPECT_EQ(json["operations_shown"], 9);
  const auto track = numbers_of<std::uint32_t>(json["intervals"]["track"]);
  const auto begin = numbers_of<std::uint32_t>(json["intervals"]["begin"]);
  const auto end = numbers_of<std::uint32_t>(json["intervals"]["end"]);
  const auto name = numbers_of<std::uint32_t>(json["intervals"]["name"]);
  ASSERT_EQ(track.size(), 11u);  // 9 operations, 2 kernels
  for (std::size_t i = 1; i < track.size(); ++i) {
    EXPECT_TRUE(track[i - 1] < track[i] || (track[i - 1] == track[i] && begin[i - 1] <= begin[i])) << i;
  }
  bool found = false;
  for (std::size_t i = 0; i < track.size(); ++i) {
    if (json["names"][name[i]] != "store C[1,2] -> GPU 1") continue;
    found = true;
    EXPECT_EQ(begin[i], 5000u);  // from where the store before it had ended
    EXPECT_EQ(end[i], 7000u);
    EXPECT_EQ(json["tracks"][track[i]],
              (ordered_json{{"gpu", 0}, {"group", "stores"}, {"name", "CU 7 stores"}, {"die", 1}}));
  }
  EXPECT_TRUE(found);
}

TEST(Columns, NameBothEndsOfAFlagThatWasWaitedFor) {
  const ordered_json json = columns_of(test::measured_tiles());
  const auto name = numbers_of<std::uint32_t>(json["intervals"]["name"]);
  const auto signals = numbers_of<std::uint32_t>(json["flags"]["signal"]);
  const auto waits = numbers_of<std::uint32_t>(json["flags"]["wait"]);
  ASSERT_EQ(signals.size(), 1u);
  EXPECT_EQ(json["names"][name[signals[0]]], "signal ready[3] -> GPU 1");
  EXPECT_EQ(json["names"][name[waits[0]]], "wait ready[3] >= 1");
}

TEST(Columns, AddThePathUpToTheRun) {
  const ordered_json json = columns_of(test::measured_tiles());
  double sum = 0;
  for (const auto& [kind, ns] : json["path_shares"].items()) sum += ns.get<double>();
  EXPECT_DOUBLE_EQ(sum, 15700);
  EXPECT_EQ(json["path_shares"]["matmul"], 8000.0);
}

TEST(Columns, LeaveOutTheLastRanksWhereAllAreTooMany) {
  ColumnOptions options;
  options.most_operations = 4;
  const ordered_json json = columns_of(test::measured_tiles(), options);
  EXPECT_EQ(json["ranks_shown"], 1);
  EXPECT_EQ(json["operations_shown"], 4);
  EXPECT_EQ(json["operations"], 9);
  for (const ordered_json& track : json["tracks"]) EXPECT_EQ(track["gpu"], 0);
}

// 10 GB/s from 1.5 us on, 30 from 2.5 us on, nothing from 3 us on.
TEST(Columns, KeepWhatLinksCarried) {
  Timeline timeline = test::measured_tiles();
  timeline.links = {{0, 1500, 10}, {0, 2500, 30}, {0, 3000, 0}};
  ColumnOptions options;
  options.link_parts = 157;  // 100 ns each
  const ordered_json json = columns_of(timeline, options);
  ASSERT_EQ(json["links"].size(), 1u);
  const auto rates = numbers_of<float>(json["links"][0]["rates"]);
  ASSERT_EQ(rates.size(), 157u);
  EXPECT_FLOAT_EQ(rates[14], 0);
  EXPECT_FLOAT_EQ(rates[15], 10);
  EXPECT_FLOAT_EQ(rates[24], 10);
  EXPECT_FLOAT_EQ(rates[27], 30);
  EXPECT_FLOAT_EQ(rates[30], 0);
  EXPECT_NEAR(json["links"][0]["mean_gb_per_s"].get<double>() * 15700, 10 * 1000 + 30 * 500, 1e-6);
}

}  // namespace
}  // namespace tritax
