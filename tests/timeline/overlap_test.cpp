#include "model/timeline/overlap.hpp"

#include <gtest/gtest.h>

#include "tests/timeline/small_timeline.hpp"

namespace tritax {
namespace {

// The example of the header: products from 0 to 6 us, stores to the peer from 4 to 9, a run of 10.
TEST(Overlap, AddsUpTheExample) {
  Timeline timeline;
  timeline.ops.push_back({{0, 0, 0, 0, 7}, OpKind::matmul, 0, 0, 6000});
  timeline.ops.push_back({{0, 0, 2, 0, 7}, OpKind::store, 0, 4000, 9000});
  const Overlap one = overlaps_of(timeline, test::tile_to_both(), 10000)[0];
  EXPECT_DOUBLE_EQ(one.computing_ns, 6000);
  EXPECT_DOUBLE_EQ(one.communicating_ns, 5000);
  EXPECT_DOUBLE_EQ(one.both_ns, 2000);
  EXPECT_DOUBLE_EQ(one.idle_ns, 1000);
  EXPECT_DOUBLE_EQ(one.hidden(), 0.4);
}

// Stores to the own GPU are no communication; what runs at once on several compute units counts once.
TEST(Overlap, CountsPeersOnlyAndEveryTimeOnce) {
  const std::vector<Overlap> all = overlaps_of(test::measured_tiles(), test::tile_to_both(), 16000);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_DOUBLE_EQ(all[0].computing_ns, 4000);
  EXPECT_DOUBLE_EQ(all[0].communicating_ns, 2800);  // the second store of rank 0, from 4200 to 7000
  EXPECT_DOUBLE_EQ(all[0].both_ns, 0);
  Timeline twice = test::measured_tiles();
  twice.ops.push_back({{0, 0, 0, 0, 8}, OpKind::matmul, 0, 1000, 5000});
  const Overlap one = overlaps_of(twice, test::tile_to_both(), 16000)[0];
  EXPECT_DOUBLE_EQ(one.computing_ns, 5000);
  EXPECT_DOUBLE_EQ(one.both_ns, 800);
}

TEST(Overlap, HasNothingHiddenWhereNothingIsSent) {
  Timeline timeline;
  timeline.ops.push_back({{0, 0, 0, 0, 7}, OpKind::matmul, 0, 0, 6000});
  const Overlap one = overlaps_of(timeline, test::tile_to_both(), 6000)[0];
  EXPECT_EQ(one.hidden(), 0);
  EXPECT_EQ(one.idle_ns, 0);
}

}  // namespace
}  // namespace tritax
