#include "model/core/quantile.hpp"

#include <gtest/gtest.h>

namespace tritax {
namespace {

TEST(Quantile, LiesBetweenNeighboursOfUnsortedValues) {
  EXPECT_DOUBLE_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 2, 3}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({30, 10, 20}, 0.9), 28);
  EXPECT_DOUBLE_EQ(quantile({30, 10, 20}, 0), 10);
  EXPECT_DOUBLE_EQ(quantile({30, 10, 20}, 1), 30);
}

TEST(Quantile, OfOneValueIsThatAndOfNoneZero) {
  EXPECT_DOUBLE_EQ(quantile({7}, 0.1), 7);
  EXPECT_DOUBLE_EQ(quantile({}, 0.5), 0);
}

}  // namespace
}  // namespace tritax
