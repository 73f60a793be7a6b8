// Quantiles of a few values.
#pragma once

#include <vector>

namespace tritax {

// The value below which a share of `values` lies, 0.5 being the median; linear interpolation between
// neighbours. `values` need not be sorted; without any it is 0.
double quantile(std::vector<double> values, double share);

}  // namespace tritax
