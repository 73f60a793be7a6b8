// Fluid bandwidth: closed answers for max-min fairness, laws for random networks.
#include "sim/fluid.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace tritax {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Flow {
  std::vector<int> links;
  double amount = 0;
  double start_ns = 0;
};

// Runs flows, one class each, and returns their completion times.
std::vector<double> run(const std::vector<double>& capacities, const std::vector<Flow>& flows) {
  FluidNetwork network;
  for (const double capacity : capacities) network.add_resource(capacity);
  std::vector<std::int32_t> ids;
  for (const Flow& flow : flows) {
    std::vector<FluidNetwork::Use> uses;
    for (const int link : flow.links) uses.push_back({link, 1.0});
    ids.push_back(network.add_class(uses, kInfinity));
  }
  std::multimap<double, std::size_t> arrivals;
  for (std::size_t i = 0; i < flows.size(); ++i) arrivals.emplace(flows[i].start_ns, i);
  std::vector<double> done(flows.size(), -1);
  double now = 0;
  for (;;) {
    const double arrival = arrivals.empty() ? kInfinity : arrivals.begin()->first;
    now = std::min(arrival, network.next_completion_ns());
    if (now == kInfinity) break;
    while (network.next_completion_ns() <= now) done[network.complete(now).token] = now;
    while (!arrivals.empty() && arrivals.begin()->first <= now) {
      const std::size_t i = arrivals.begin()->second;
      arrivals.erase(arrivals.begin());
      network.start(ids[i], flows[i].amount, 1.0, static_cast<std::uint32_t>(i), now);
    }
    network.settle(now);
  }
  return done;
}

// The answers below follow by hand from max-min fairness; SimGrid 3.32 (model CM02) gives the same.

TEST(Fluid, SharedLinkSlowsOnlyThoseThatUseIt) {
  // f1 and f2 get 5 each on L0; f3 has the other 15 of L1 and ends first.
  const auto done = run({10, 20}, {{{0}, 100}, {{0, 1}, 100}, {{1}, 100}});
  EXPECT_NEAR(done[2], 100.0 / 15, 1e-9);
  EXPECT_NEAR(done[0], 20, 1e-9);
  EXPECT_NEAR(done[1], 20, 1e-9);
}

TEST(Fluid, IncastOfSevenLeavesTheFreeLinkAlone) {
  std::vector<Flow> flows(7, Flow{{0}, 100});
  flows.push_back({{1}, 100});
  const auto done = run({50, 50}, flows);
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(done[i], 14, 1e-9);
  EXPECT_NEAR(done[7], 2, 1e-9);
}

TEST(Fluid, LateArrivalOnOneLinkFreesTheSharedPortForTheOther) {
  // Two links of 48 behind a port of 64: a and b run at 32. At t = 5 a third flow halves a's link: a and the
  // late one run at 24, b takes the 40 that the port has left.
  const auto done = run({48, 48, 64}, {{{0, 2}, 480}, {{1, 2}, 480}, {{0}, 240, 5}});
  EXPECT_NEAR(done[1], 13, 1e-9);
  EXPECT_NEAR(done[2], 15, 1e-9);
  EXPECT_NEAR(done[0], 50.0 / 3, 1e-9);
}

TEST(Fluid, ParkingLotGivesTheLongFlowItsFairShareOnEveryLink) {
  const auto done = run({10, 10, 10}, {{{0, 1, 2}, 100}, {{0}, 100}, {{1}, 50}, {{2}, 25}});
  EXPECT_NEAR(done[3], 5, 1e-9);
  EXPECT_NEAR(done[2], 10, 1e-9);
  EXPECT_NEAR(done[1], 20, 1e-9);
  EXPECT_NEAR(done[0], 20, 1e-9);
}

TEST(Fluid, ActivitiesOfOneClassShareItsRateByWeight) {
  FluidNetwork network;
  const FluidNetwork::Use link{network.add_resource(30), 1.0};
  const auto id = network.add_class(std::span(&link, 1), kInfinity);
  network.start(id, 100, 1.0, 0, 0);
  network.start(id, 100, 2.0, 1, 0);
  network.settle(0);
  EXPECT_NEAR(network.next_completion_ns(), 5, 1e-12);  // 20 of 30
  EXPECT_EQ(network.complete(5).token, 1u);
  network.settle(5);
  EXPECT_NEAR(network.next_completion_ns(), 5 + 50.0 / 30, 1e-12);
}

TEST(Fluid, CapHoldsUntilTheLinkIsFull) {
  FluidNetwork network;
  const FluidNetwork::Use link{network.add_resource(10), 1.0};
  const auto id = network.add_class(std::span(&link, 1), 4.0);
  network.start(id, 8, 1.0, 0, 0);
  network.start(id, 8, 1.0, 1, 0);
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.level(id), 4);
  EXPECT_EQ(network.bottleneck(id), FluidNetwork::kNone);
  network.start(id, 8, 1.0, 2, 0);
  network.settle(0);
  EXPECT_NEAR(network.level(id), 10.0 / 3, 1e-12);
  EXPECT_EQ(network.bottleneck(id), link.resource);
}

// Two share a resource until the smaller one ends; the larger then goes on at its cap.
TEST(Fluid, WhatIsLostAgainstTheCapOnLinksIsCounted) {
  for (const bool link : {false, true}) {
    FluidNetwork network;
    const FluidNetwork::Use shared{network.add_resource(15, link), 1.0};
    const auto large = network.add_class(std::span(&shared, 1), 10.0);
    const auto small = network.add_class(std::span(&shared, 1), 10.0);
    network.start(large, 30, 1.0, 0, 0);
    network.start(small, 15, 1.0, 1, 0);
    network.settle(0);
    EXPECT_NEAR(network.complete(2).lost_on_links_ns, link ? 0.5 : 0, 1e-12);
    network.settle(2);
    const FluidNetwork::Completion last = network.complete(3.5);
    EXPECT_EQ(last.token, 0u);
    EXPECT_NEAR(last.lost_on_links_ns, link ? 0.5 : 0, 1e-12);
  }
}

// First a memory holds the first class, then, at the same level, a link.
TEST(Fluid, WhatIsLostCountsForWhatHoldsTheClassAtTheTime) {
  FluidNetwork network;
  const FluidNetwork::Use memory{network.add_resource(10), 1.0};
  const FluidNetwork::Use link{network.add_resource(10, true), 1.0};
  const std::array both{memory, link};
  const auto first = network.add_class(both, 10.0);
  const auto reader = network.add_class(std::span(&memory, 1), 10.0);
  const auto sender = network.add_class(std::span(&link, 1), 10.0);
  network.start(first, 20, 1.0, 0, 0);
  network.start(reader, 10, 1.0, 1, 0);
  network.settle(0);
  network.start(sender, 20, 1.0, 2, 1);
  network.settle(1);
  EXPECT_EQ(network.complete(2).token, 1u);
  network.settle(2);
  EXPECT_NEAR(network.level(first), 5, 1e-12);
  EXPECT_EQ(network.bottleneck(first), link.resource);
  const FluidNetwork::Completion last = network.complete(4);
  EXPECT_EQ(last.token, 0u);
  EXPECT_NEAR(last.lost_on_links_ns, 1, 1e-12);
}

TEST(Fluid, ChangedCapTakesEffectOnRunningActivities) {
  FluidNetwork network;
  const auto id = network.add_class({}, 2.0);
  network.start(id, 10, 1.0, 0, 0);
  network.settle(0);
  network.set_cap(id, 4.0);
  network.settle(0);
  EXPECT_NEAR(network.next_completion_ns(), 2.5, 1e-12);
}

TEST(Fluid, ClassThatEmptiesAndRefillsAtOneTimeLeavesNoLoadBehind) {
  FluidNetwork network;
  const FluidNetwork::Use link{network.add_resource(10), 1.0};
  const auto id = network.add_class(std::span(&link, 1), 4.0);
  double now = 0;
  network.start(id, 4, 1.0, 0, now);
  network.settle(now);
  for (int i = 0; i < 1000; ++i) {
    now = network.next_completion_ns();
    network.complete(now);
    network.start(id, 4, 1.0, 0, now);
    network.settle(now);
  }
  EXPECT_NEAR(now, 1000, 1e-6);
  EXPECT_NEAR(network.load(link.resource), 4, 1e-9);
  EXPECT_NEAR(network.carried(link.resource, now), 4000, 1e-6);
}

TEST(Fluid, OneActivityForAnotherAtTheSameTimeOnAFullLinkEndsOnItsOwnTime) {
  // Two classes fill a link; in one of them a short activity takes the place of one that ended. Rates and
  // weights stay, but what ends next does not.
  FluidNetwork network;
  const FluidNetwork::Use link{network.add_resource(4), 1.0};
  const auto a = network.add_class(std::span(&link, 1), kInfinity);
  const auto b = network.add_class(std::span(&link, 1), kInfinity);
  network.start(a, 10, 1.0, 0, 0);
  network.start(a, 100, 1.0, 1, 0);
  network.start(b, 100, 1.0, 2, 0);
  network.start(b, 100, 1.0, 3, 0);
  network.settle(0);
  EXPECT_EQ(network.complete(10).token, 0u);
  network.start(a, 5, 1.0, 4, 10);
  network.settle(10);
  EXPECT_NEAR(network.next_completion_ns(), 15, 1e-9);
}

TEST(Fluid, TellsAfterOneEndOfAnotherThatOnlyRoundingPutsLater) {
  FluidNetwork network;
  const auto a = network.add_class({}, 1);
  const auto b = network.add_class({}, 0.1);
  network.start(a, 0.3, 1.0, 0, 0);
  network.start(b, 0.1 * 0.3 * (1 + 1e-14), 1.0, 1, 0);  // in 0.3 ns too, but for a few last digits
  network.start(b, 0.1 * 0.3 * (1 + 1e-9), 1.0, 2, 0);
  network.settle(0);
  double now = network.next_completion_ns();
  const std::uint32_t first = network.complete(now).token;
  ASSERT_GT(network.next_completion_ns(), now);
  ASSERT_LE(network.next_completion_ns(), same_time_until(now));
  now = std::max(now, network.next_completion_ns());
  EXPECT_EQ(first + network.complete(now).token, 1u);
  EXPECT_EQ(network.next_completion_ns(), kInfinity);  // until settled
  network.settle(now);
  EXPECT_TRUE(later(network.next_completion_ns(), now));
  EXPECT_NEAR(network.next_completion_ns(), 0.3 * (1 + 1e-9), 1e-15);
}

TEST(Fluid, ClassThatTakesAFullLinkOverAtOnceIsItsLoad) {
  FluidNetwork network;
  const FluidNetwork::Use link{network.add_resource(4), 1.0};
  const auto a = network.add_class(std::span(&link, 1), kInfinity);
  const auto b = network.add_class(std::span(&link, 1), kInfinity);
  network.start(a, 40, 1.0, 0, 0);
  network.settle(0);
  network.complete(10);
  network.start(b, 40, 1.0, 1, 10);
  network.settle(10);
  EXPECT_EQ(network.load(link.resource), 4);
  EXPECT_EQ(network.level(b), 4);
}

TEST(Fluid, ChangesOnTwoFullLinksAtOnceLeaveEachToItsUsers) {
  FluidNetwork network;
  const FluidNetwork::Use port{network.add_resource(100), 1.0};
  const FluidNetwork::Use links[] = {{network.add_resource(12), 1.0}, {network.add_resource(20), 1.0}};
  std::int32_t classes[2][2];
  for (int link = 0; link < 2; ++link) {
    for (std::int32_t& flow : classes[link]) {
      flow = network.add_class(std::vector<FluidNetwork::Use>{port, links[link]}, 50);
    }
  }
  network.start(classes[0][0], 60, 1.0, 0, 0);
  network.start(classes[0][1], 600, 1.0, 1, 0);
  network.start(classes[1][0], 600, 1.0, 2, 0);
  network.settle(0);
  EXPECT_EQ(network.next_completion_ns(), 10);
  network.complete(10);
  network.start(classes[1][1], 600, 1.0, 3, 10);
  network.settle(10);
  EXPECT_EQ(network.level(classes[0][1]), 12);
  EXPECT_EQ(network.level(classes[1][0]), 10);
  EXPECT_EQ(network.level(classes[1][1]), 10);
  EXPECT_EQ(network.load(port.resource), 32);
  // With the port full as well, every activity that is held there takes part.
  const auto third = network.add_class(std::span(&port, 1), kInfinity);
  network.start(third, 600, 1.0, 4, 10);
  network.start(classes[0][0], 60, 1.0, 5, 10);
  network.start(classes[1][0], 600, 1.0, 6, 10);
  network.settle(10);
  EXPECT_EQ(network.load(port.resource), 100);
  EXPECT_EQ(network.level(third), 68);
  EXPECT_EQ(network.level(classes[0][0]), 6);
  EXPECT_NEAR(network.level(classes[1][1]), 20.0 / 3, 1e-12);
}

struct RandomNetwork {
  std::vector<double> capacities;
  std::vector<std::vector<int>> routes;
  std::vector<double> caps;
};

RandomNetwork random_network() {
  RandomNetwork network;
  const int links = *rc::gen::inRange(1, 9);
  const int flows = *rc::gen::inRange(1, 30);
  for (int i = 0; i < links; ++i) network.capacities.push_back(*rc::gen::inRange(1, 100));
  for (int i = 0; i < flows; ++i) {
    std::vector<int> route;
    for (int link = 0; link < links; ++link) {
      if (*rc::gen::inRange(0, 3) == 0) route.push_back(link);
    }
    if (route.empty()) route.push_back(*rc::gen::inRange(0, links));
    network.routes.push_back(route);
    network.caps.push_back(*rc::gen::inRange(0, 2) == 0 ? kInfinity : *rc::gen::inRange(1, 50));
  }
  return network;
}

// Max-min fairness, from its definition: nothing exceeds a capacity, and every activity below its cap has a
// saturated resource on which no other is faster.
void expect_max_min_fair(const FluidNetwork& network, const RandomNetwork& spec,
                         const std::vector<std::int32_t>& ids) {
  std::vector<double> load(spec.capacities.size(), 0);
  std::vector<double> fastest(spec.capacities.size(), 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (network.active(ids[i]) == 0) continue;
    for (const int link : spec.routes[i]) {
      load[link] += network.class_rate(ids[i]);
      fastest[link] = std::max(fastest[link], network.level(ids[i]));
    }
  }
  for (std::size_t link = 0; link < load.size(); ++link) {
    RC_ASSERT(load[link] <= spec.capacities[link] * (1 + 1e-7));
    RC_ASSERT(std::abs(network.load(static_cast<std::int32_t>(link)) - load[link]) <= 1e-6);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (network.active(ids[i]) == 0 || network.level(ids[i]) >= spec.caps[i] * (1 - 1e-7)) continue;
    bool held = false;
    for (const int link : spec.routes[i]) {
      held = held || (load[link] >= spec.capacities[link] * (1 - 1e-7) &&
                      fastest[link] <= network.level(ids[i]) * (1 + 1e-7));
    }
    RC_ASSERT(held);
  }
}

RC_GTEST_PROP(FluidLaws, RatesStayMaxMinFairThroughStartsAndEnds, ()) {
  const RandomNetwork spec = random_network();
  FluidNetwork network;
  for (const double capacity : spec.capacities) network.add_resource(capacity);
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < spec.routes.size(); ++i) {
    std::vector<FluidNetwork::Use> uses;
    for (const int link : spec.routes[i]) uses.push_back({link, 1.0});
    ids.push_back(network.add_class(uses, spec.caps[i]));
  }
  double now = 0;
  double put_in = 0;
  for (int step = 0; step < 60; ++step) {
    const bool ends = network.next_completion_ns() < kInfinity && *rc::gen::inRange(0, 2) == 0;
    if (ends) {
      now = network.next_completion_ns();
      network.complete(now);
    }
    const int starts = *rc::gen::inRange(ends ? 0 : 1, 3);  // also where something ends at the same time
    for (int s = 0; s < starts; ++s) {
      const std::size_t i = *rc::gen::inRange<std::size_t>(0, ids.size());
      const double amount = *rc::gen::inRange(1, 100);
      network.start(ids[i], amount, *rc::gen::inRange(1, 3), 0, now);
      put_in += amount * static_cast<double>(spec.routes[i].size());
    }
    network.settle(now);
    expect_max_min_fair(network, spec, ids);
  }
  while (network.next_completion_ns() < kInfinity) {
    now = network.next_completion_ns();
    network.complete(now);
    network.settle(now);
  }
  double carried = 0;
  for (std::size_t link = 0; link < spec.capacities.size(); ++link) {
    carried += network.carried(static_cast<std::int32_t>(link), now);
    RC_ASSERT(std::abs(network.load(static_cast<std::int32_t>(link))) < 1e-6);
  }
  RC_ASSERT(std::abs(carried - put_in) <= 1e-6 * put_in + 1e-6);  // bytes in = bytes out
}

RC_GTEST_PROP(FluidLaws, ScalingEveryCapacityScalesTime, ()) {
  const RandomNetwork spec = random_network();
  const double factor = *rc::gen::inRange(2, 9);
  std::vector<Flow> flows;
  for (const auto& route : spec.routes)
    flows.push_back({route, static_cast<double>(*rc::gen::inRange(1, 100))});
  std::vector<double> faster = spec.capacities;
  for (double& capacity : faster) capacity *= factor;
  const auto slow = run(spec.capacities, flows);
  const auto fast = run(faster, flows);
  for (std::size_t i = 0; i < flows.size(); ++i)
    RC_ASSERT(std::abs(slow[i] - factor * fast[i]) <= 1e-6 * slow[i]);
}

}  // namespace
}  // namespace tritax
