// Reads over time: their steps add up to all reads, at the right place and time.
#include "model/timeline/counters.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/machine/topology.hpp"
#include "model/timeline/perfetto.hpp"
#include "tests/timeline/small_timeline.hpp"

namespace tritax {
namespace {

using nlohmann::json;

constexpr double kRounding = 1e-9;

Timeline two_operations() {
  Timeline timeline;
  timeline.ops.push_back({{0, 0, 0, 0, 1}, OpKind::matmul, 0, 1000, 3000});
  timeline.ops.push_back({{1, 0, 1, 1, 1}, OpKind::matmul, 0, 2000, 2500});
  return timeline;
}

Timeline two_operations_and_a_copy() {
  Timeline timeline = two_operations();
  timeline.copies.push_back({1, 0, 0, 3000.5, 4000.5});
  return timeline;
}

ReadBytes sum_of(const ReadRates& rates, std::size_t rank) {
  ReadBytes sum;
  const auto step_ns = static_cast<double>(rates.step_ns);
  for (const ReadBytes& step : rates.of_gpu.at(rank)) {
    sum.l2 += step.l2 * step_ns;
    sum.llc += step.llc * step_ns;
    sum.hbm += step.hbm * step_ns;
  }
  return sum;
}

TEST(ReadRates, AreTheBytesOfAReadOverTheTimeOfItsOperation) {
  const Timeline timeline = two_operations_and_a_copy();
  Counters counters;
  counters.reads.push_back({0, false, 0, 4000, 2000, 1000});
  const ReadRates rates = read_rates(timeline, counters, 2, 6);  // of 500 ns
  EXPECT_EQ(rates.step_ns, 500);
  ASSERT_EQ(rates.of_gpu.size(), 2u);
  ASSERT_EQ(rates.of_gpu[0].size(), 6u);
  for (std::size_t step = 0; step < 6; ++step) {
    const double runs = step >= 2 ? 1 : 0;
    EXPECT_NEAR(rates.of_gpu[0][step].l2, 2 * runs, kRounding) << step;
    EXPECT_NEAR(rates.of_gpu[0][step].llc, 1 * runs, kRounding) << step;
    EXPECT_NEAR(rates.of_gpu[0][step].hbm, 0.5 * runs, kRounding) << step;
    EXPECT_EQ(rates.of_gpu[1][step].l2, 0) << step;
  }
}

TEST(ReadRates, OfOperationsAndCopiesThatOverlapAddUp) {
  const Timeline timeline = two_operations_and_a_copy();
  Counters counters;
  counters.reads.push_back({0, false, 0, 4000, 2000, 1000});
  counters.reads.push_back({0, false, 1, 0, 0, 300});  // by a peer
  counters.reads.push_back({0, true, 0, 0, 0, 50});
  for (const std::size_t most : {1, 2, 3, 7, 100, 10'000}) {
    const ReadRates rates = read_rates(timeline, counters, 1, most);
    EXPECT_LE(rates.of_gpu[0].size(), most);
    const ReadBytes sum = sum_of(rates, 0);
    EXPECT_NEAR(sum.l2, 4000, 4000 * kRounding) << most;
    EXPECT_NEAR(sum.llc, 2000, 2000 * kRounding) << most;
    EXPECT_NEAR(sum.hbm, 1350, 1350 * kRounding) << most;
  }
}

TEST(ReadRates, OfAReadThatTakesNoTimeKeepItsBytes) {
  Timeline timeline = two_operations_and_a_copy();
  for (const double at_ns : {0.0, 700.0, 1000.0}) {
    timeline.ops[0].begin_ns = timeline.ops[0].end_ns = at_ns;
    Counters counters;
    counters.reads.push_back({0, false, 0, 8, 0, 0});
    counters.reads.push_back({1, false, 1, 0, 0, 16});
    const ReadRates rates = read_rates(timeline, counters, 2, 5);
    EXPECT_NEAR(sum_of(rates, 0).l2, 8, kRounding);
    EXPECT_NEAR(sum_of(rates, 1).hbm, 16, kRounding);
  }
}

TEST(ReadRates, WithoutReadsAreNone) {
  const ReadRates rates = read_rates(two_operations_and_a_copy(), {}, 2);
  ASSERT_EQ(rates.of_gpu.size(), 2u);
  EXPECT_TRUE(rates.of_gpu[0].empty());
}

using Samples = std::vector<std::pair<double, double>>;  // us, and the value

// Counters of a GPU by name and unit.
std::map<std::string, Samples> counters_in(const json& trace, int process) {
  std::map<std::string, Samples> found;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "C" || event["pid"] != process) continue;
    for (const auto& [unit, value] : event["args"].items()) {
      found[event["name"].get<std::string>() + " " + unit].emplace_back(event["ts"], value);
    }
  }
  return found;
}

TEST(PerfettoCounters, ShowTheClockWhereItChangesAndReadsUntilTheyEnd) {
  Machine machine;
  machine.gpus_per_node = 2;
  machine.fabric.link_raw_gb_per_s = 64;
  Counters counters;
  counters.clocks = {{0, 0, 1.98}, {1, 0, 1.98}, {0, 1500.4, 1.7554}};
  counters.reads.push_back({0, false, 0, 6000, 0, 1500});
  const Schedule schedule = test::tile_to_both();
  const Timeline timeline = two_operations();
  const json trace =
      json::parse(timeline_to_perfetto_json(timeline, schedule, build_topology(machine, 2), "", counters));
  auto gpu = counters_in(trace, 0);
  EXPECT_EQ(gpu["matrix core clock GHz"], (Samples{{0, 1.98}, {1.5, 1.755}}));
  EXPECT_EQ(counters_in(trace, 1)["matrix core clock GHz"], (Samples{{0, 1.98}}));
  EXPECT_EQ(counters_in(trace, 1).size(), 1u);  // it reads nothing
  EXPECT_EQ(gpu.count("read from last-level cache GB/s"), 0u);
  // The run of 3 us is drawn in steps of 2 ns.
  EXPECT_EQ(gpu["read from L2 GB/s"], (Samples{{1, 3}, {3, 0}}));
  EXPECT_EQ(gpu["read from memory GB/s"], (Samples{{1, 0.75}, {3, 0}}));
}

TEST(PerfettoCounters, AreMissingWhereNobodyCounted) {
  const Schedule schedule = test::tile_to_both();
  Machine machine;
  machine.gpus_per_node = 2;
  machine.fabric.link_raw_gb_per_s = 64;
  const std::string text = timeline_to_perfetto_json(two_operations(), schedule, build_topology(machine, 2));
  EXPECT_EQ(text.find("\"ph\":\"C\""), std::string::npos);
}

}  // namespace
}  // namespace tritax
