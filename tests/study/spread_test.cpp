// How much a time depends on the seed: the figures of the header, and that every draw is a simulation of its
// seed.
#include "sim/study/spread.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>

#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

TEST(Spread, IsTheRelativeStandardDeviationOfTheTimes) {
  const Spread spread{1, {226e3, 240e3, 265e3, 231e3, 228e3}};
  EXPECT_NEAR(spread.relative(), 0.0673, 5e-5);
  EXPECT_NEAR(widened(0.079, spread.relative()), 0.1360, 5e-5);
  EXPECT_EQ(spread.low_ns(), 226e3);
  EXPECT_EQ(spread.high_ns(), 265e3);
  EXPECT_EQ(spread.last_seed(), 5u);
  EXPECT_TRUE(spread.worth_saying());
}

TEST(Spread, OfOneTimeIsNotKnownAndWidensNothing) {
  const Spread one{7, {100e3}};
  EXPECT_FALSE(one.known());
  EXPECT_EQ(widened(0.05, one.relative()), 0.05);
  EXPECT_FALSE(one.worth_saying());
  EXPECT_FALSE(Spread().known());
}

RC_GTEST_PROP(SpreadLaw, ABandIsNeverNarrowerThanItWasOrThanTheSpread, ()) {
  const double narrow = *rc::gen::inRange(0, 1000) / 1000.0;
  const double spread = *rc::gen::inRange(0, 1000) / 1000.0;
  const double band = widened(narrow, spread);
  RC_ASSERT(band >= narrow);
  RC_ASSERT(band >= 1.64 * spread);
  RC_ASSERT(band <= narrow + 1.65 * spread + 1e-12);
}

TEST(Spread, LargeRunsAreDrawnFewerTimes) {
  EXPECT_EQ(cheap_seeds(1000), 5);
  EXPECT_EQ(cheap_seeds(1 << 20), 2);
  EXPECT_EQ(cheap_seeds((1 << 20) + 1), 1);
}

class SpreadOfARun : public testing::Test {
 protected:
  const Machine machine = find_machine("h200-4");
  const Schedule schedule = build("library", {512, 1024, 256, DType::fp16, 4}, machine, {});

  double time_ns(std::uint64_t seed) const {
    SimulationOptions options;
    options.seed = seed;
    return simulate(schedule, machine, options).makespan_ns;
  }
};

TEST_F(SpreadOfARun, EveryTimeIsThatOfItsSeed) {
  SimulationOptions options;
  options.seed = 3;
  const Spread spread = spread_of(schedule, machine, options, time_ns(3));
  ASSERT_EQ(spread.times_ns.size(), 5u);
  for (std::size_t i = 0; i < spread.times_ns.size(); ++i) EXPECT_EQ(spread.times_ns[i], time_ns(3 + i));
}

TEST_F(SpreadOfARun, IsNotKnownIfSomebodySaidStop) {
  const std::atomic<bool> stop{true};
  SimulationOptions options;
  options.stop = &stop;
  EXPECT_FALSE(spread_of(schedule, machine, options, time_ns(1)).known());
}

}  // namespace
}  // namespace tritax
