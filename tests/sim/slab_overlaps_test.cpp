#include "sim/slab_overlaps.hpp"

#include <gtest/gtest.h>

namespace tritax {
namespace {

constexpr std::uint64_t kSomeBand = 7;
constexpr double kSlabBytes = 64;  // of a slab of 64 iterations
constexpr double kAccessNs = 640;  // of an access to one; memory gives as much in 640 ns as two slabs have
constexpr double kFillRate = 0.2;

// Slabs 0: [0, 64), 1: [24, 88), 2: [64, 128) of one band, 3: [0, 64) of another, 4: [128, 192).
SlabOverlaps some_overlaps() {
  SlabOverlaps overlaps;
  overlaps.add(0, kSomeBand, 128, 0, 64, kSlabBytes);
  overlaps.add(1, kSomeBand, 128, 24, 88, kSlabBytes);
  overlaps.add(2, kSomeBand, 128, 64, 128, kSlabBytes);
  overlaps.add(3, kSomeBand + 1, 128, 0, 64, kSlabBytes);
  overlaps.add(4, kSomeBand, 128, 128, 192, kSlabBytes);
  overlaps.finish();
  return overlaps;
}

bool touch_and_ask(const SlabOverlaps& overlaps, ReuseCache& cache, std::uint32_t slab, double now_ns) {
  const bool own = cache.touch(slab, now_ns, kAccessNs);
  return own || overlaps.covers(slab, cache, now_ns, kAccessNs);
}

TEST(SlabOverlaps, FindsWhatIsMostOfASlabAndAnotherReadsAndNothingElsewhere) {
  const SlabOverlaps overlaps = some_overlaps();
  ReuseCache cache(1000, kFillRate);
  EXPECT_FALSE(touch_and_ask(overlaps, cache, 0, 0));
  EXPECT_TRUE(touch_and_ask(overlaps, cache, 1, 1));
  EXPECT_FALSE(touch_and_ask(overlaps, cache, 3, 1));
  EXPECT_FALSE(touch_and_ask(overlaps, cache, 4, 1));
}

TEST(SlabOverlaps, AddsUpWhatSeveralHave) {
  SlabOverlaps overlaps;
  overlaps.add(0, kSomeBand, 128, 0, 24, kSlabBytes * 24 / 64);
  overlaps.add(1, kSomeBand, 128, 40, 64, kSlabBytes * 24 / 64);
  overlaps.add(2, kSomeBand, 128, 0, 64, kSlabBytes);
  overlaps.finish();
  ReuseCache cache(1000, kFillRate);
  EXPECT_FALSE(touch_and_ask(overlaps, cache, 0, 0));
  EXPECT_FALSE(overlaps.covers(2, cache, 0, kAccessNs));
  EXPECT_FALSE(touch_and_ask(overlaps, cache, 1, 0));
  EXPECT_TRUE(overlaps.covers(2, cache, 0, kAccessNs));
}

// [24, 88) starts with what [0, 64) reads after 3/8 of its time; by then memory may have given 48 bytes more.
TEST(SlabOverlaps, MissesWhatIsReplacedBetweenTheTwo) {
  const SlabOverlaps overlaps = some_overlaps();
  for (const double capacity : {47., 49.}) {
    ReuseCache cache(capacity, kFillRate);
    cache.touch(0, 0, kAccessNs);
    EXPECT_EQ(touch_and_ask(overlaps, cache, 1, 0), capacity > 48) << capacity;
  }
  // Started so much later, the two read the chunk at once.
  ReuseCache small(1, kFillRate);
  small.touch(0, 0, kAccessNs);
  EXPECT_TRUE(touch_and_ask(overlaps, small, 1, kAccessNs * 3 / 8));
}

// All that can come between are other operands: five slabs, of which 192 iterations of the one band and 64 of
// the other are different.
TEST(SlabOverlaps, ReplacesNoMoreThanAllOperands) {
  const SlabOverlaps overlaps = some_overlaps();
  for (const double capacity : {255., 257.}) {
    ReuseCache cache(capacity, kFillRate);
    cache.touch(0, 0, kAccessNs);
    EXPECT_EQ(touch_and_ask(overlaps, cache, 1, 1e6), capacity > 256) << capacity;
  }
}

TEST(SlabOverlaps, HasNothingToSayOfEqualAndOfSeparateRanges) {
  SlabOverlaps overlaps;
  overlaps.add(0, kSomeBand, 128, 0, 64, kSlabBytes);
  overlaps.add(1, kSomeBand, 128, 64, 128, kSlabBytes);
  overlaps.add(2, kSomeBand, 64, 0, 64, kSlabBytes);
  overlaps.finish();
  EXPECT_TRUE(overlaps.empty());
}

}  // namespace
}  // namespace tritax
