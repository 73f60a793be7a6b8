#include "model/cost/service_weights.hpp"

#include <boost/math/distributions/lognormal.hpp>
#include <cmath>

#include "model/core/error.hpp"

namespace tritax {

namespace {
constexpr double kCutOff = 0.005;  // on either side

double quantile_of(double spread, double share) {
  const double variance = std::log1p(spread * spread);  // of the logarithm
  if (variance == 0) return 1;                          // no spread, or a spread whose square rounds to 0
  return boost::math::quantile(boost::math::lognormal(-variance / 2, std::sqrt(variance)), share);
}
}  // namespace

ServiceWeights::ServiceWeights(double spread) {
  TRITAX_ASSERT(spread >= 0, "a spread cannot be negative");
  for (std::size_t i = 0; i < kEntries; ++i) {
    const double share = kCutOff + (1 - 2 * kCutOff) * static_cast<double>(i) / (kEntries - 1);
    weights_[i] = quantile_of(spread, share);
  }
}

double ServiceWeights::highest(double spread) { return quantile_of(spread, 1 - kCutOff); }

}  // namespace tritax
