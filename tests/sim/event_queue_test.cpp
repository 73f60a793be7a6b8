// Order of events: by time, and at equal times in the order in which they were pushed.
#include "sim/event_queue.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace tritax {
namespace {

TEST(EventQueue, EmptyHasNoNextTime) {
  EventQueue<int> queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next_time_ns(), std::numeric_limits<double>::infinity());
}

TEST(EventQueue, KeepsPushOrderAtEqualTimesAlsoAcrossPops) {
  EventQueue<int> queue;
  for (int i = 0; i < 400; ++i) queue.push(5, i);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(queue.pop().payload, i);
  for (int i = 400; i < 500; ++i) queue.push(5, i);
  for (int i = 300; i < 500; ++i) EXPECT_EQ(queue.pop().payload, i);
}

TEST(EventQueue, DoesNotRoundTimes) {
  EventQueue<int> queue;
  const double now = 1e9;  // ns
  const double next = std::nextafter(now, 2 * now);
  queue.push(next, 1);
  queue.push(now, 0);
  EXPECT_EQ(queue.next_time_ns(), now);
  EXPECT_EQ(queue.pop().payload, 0);
  EXPECT_EQ(queue.next_time_ns(), next);
}

// The reference is a stable sort by time of what is in the queue. Times go up as in a simulation, by more or
// less, or not at all.
RC_GTEST_PROP(EventQueueLaw, PopsWhatAStableSortPutsFirst, ()) {
  EventQueue<int> queue;
  std::vector<std::pair<double, int>> reference;
  const int steps = *rc::gen::inRange(1, 1000);
  const int rise = *rc::gen::element(0, 1, 8);
  for (int i = 0; i < steps; ++i) {
    if (reference.empty() || *rc::gen::inRange(0, 3) > 0) {
      const double time = *rc::gen::inRange(0, 8) + i * rise / 4;
      queue.push(time, i);
      reference.emplace_back(time, i);
      continue;
    }
    std::stable_sort(reference.begin(), reference.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    RC_ASSERT(queue.next_time_ns() == reference.front().first);
    RC_ASSERT(queue.next() == reference.front().second);
    const auto event = queue.pop();
    RC_ASSERT(event.time_ns == reference.front().first);
    RC_ASSERT(event.payload == reference.front().second);
    reference.erase(reference.begin());
    RC_ASSERT(queue.empty() == reference.empty());
  }
}

}  // namespace
}  // namespace tritax
