// Computes quantiles of a few values.
#pragma once

#include <vector>

namespace tritax {

// The value below which a share of `values` lies (0.5: the median), with linear interpolation between
// neighbours. `values` need not be sorted; 0 if `values` is empty.
double quantile(std::vector<double> values, double share);

}  // namespace tritax
