// The queue by end time: entries leave in order of their end, in whatever order they came.
#include "sim/first_queue.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

namespace tritax {
namespace {

struct Entry {
  std::int64_t time = 0;
  std::uint32_t sequence = 0;
};

struct Later {
  bool operator()(const Entry& a, const Entry& b) const {
    return std::tie(a.time, a.sequence) > std::tie(b.time, b.sequence);
  }
};

using Queue = FirstQueue<Entry, Later>;

TEST(FirstQueue, KeepsEqualEntriesInTheOrderOfTheirSequence) {
  Queue queue;
  for (const std::uint32_t sequence : {0u, 1u, 2u}) queue.push({7, sequence});
  queue.push({5, 3});
  std::vector<std::uint32_t> left;
  while (!queue.empty()) left.push_back(queue.pop().sequence);
  EXPECT_EQ(left, (std::vector<std::uint32_t>{3, 0, 1, 2}));
}

// Entries that rise, that come a little out of order, and that come in any order, in one queue: the first are
// appended, the second inserted, the last go through the heap. Enough of them to move the run to its front.
RC_GTEST_PROP(FirstQueueLaw, LetsEntriesGoAsAPriorityQueueDoes, ()) {
  Queue queue;
  std::priority_queue<Entry, std::vector<Entry>, Later> reference;
  std::int64_t latest = 0;
  std::uint32_t sequence = 0;
  for (int step = 0; step < 600; ++step) {
    if (reference.empty() || *rc::gen::inRange(0, 5) < 3) {
      const int kind = *rc::gen::inRange(0, 8);
      const std::int64_t below = kind < 4   ? 0
                                 : kind < 7 ? *rc::gen::inRange(0, 20)
                                            : *rc::gen::inRange(0, 2000);
      latest += *rc::gen::inRange(0, 3);
      const Entry entry{latest - below, sequence++};
      queue.push(entry);
      reference.push(entry);
    } else {
      RC_ASSERT(queue.front().sequence == reference.top().sequence);
      RC_ASSERT(queue.pop().sequence == reference.top().sequence);
      reference.pop();
    }
    RC_ASSERT(queue.size() == reference.size());
    RC_ASSERT(queue.empty() == reference.empty());
  }
}

}  // namespace
}  // namespace tritax
