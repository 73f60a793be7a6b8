#include "model/cost/service_weights.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tritax {
namespace {

TEST(ServiceWeights, HaveMeanOneAndTheSpreadAskedFor) {
  for (const double spread : {0.015, 0.2, 0.35}) {
    const ServiceWeights weights(spread);
    constexpr int kDraws = 100000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double weight = weights.at((i + 0.5) / kDraws);
      sum += weight;
      squares += weight * weight;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 1, 0.01);
    // The outermost per cent, which is left out, holds a tenth of the variance.
    EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean), spread, 0.1 * spread);
  }
}

TEST(ServiceWeights, RiseWithTheShareAndEndAtTheHighest) {
  const ServiceWeights weights(0.3);
  double before = 0;
  for (int i = 0; i < 1000; ++i) {
    const double weight = weights.at(i / 1000.0);
    EXPECT_GT(weight, before);
    before = weight;
  }
  EXPECT_LE(before, ServiceWeights::highest(0.3));
  EXPECT_NEAR(weights.at(std::nextafter(1.0, 0.0)), ServiceWeights::highest(0.3), 1e-9);
}

TEST(ServiceWeights, WithoutSpreadAreAllOne) {
  const ServiceWeights weights(0);
  for (const double uniform : {0.0, 0.3, 0.999}) EXPECT_EQ(weights.at(uniform), 1);
  EXPECT_EQ(ServiceWeights::highest(0), 1);
}

TEST(ServiceWeights, ASpreadWhoseSquareVanishesIsNone) {
  for (const double spread : {1e-170, 1e-300}) {
    EXPECT_EQ(ServiceWeights(spread).at(0.9), 1);
    EXPECT_EQ(ServiceWeights::highest(spread), 1);
  }
}

}  // namespace
}  // namespace tritax
