// Models how unequally a full link serves equal requesters.
//
// Switches and memory controllers do not serve equal transfers equally. Time stamps of the 4,096 copies of
// one run that fill the link between two H200 (`tritax measure --timeline`,
// shallow/8192x8192x1024/128x128/bulk-synchronous of scenarios/measured/h200-2-more.toml) show rates that
// hardly depend on the workgroup or on its previous copy (own measurement, 2026-11-21: within workgroups 34
// %, between workgroups 16 %, correlation with the next copy -0.16). Their 1, 10 and 90 % quantiles are those
// of a lognormal distribution. The microbenchmark `arbitration` measures the width of the distribution.
// Without such differences workgroups that start together stay together: all send, then all compute.
#pragma once

#include <array>
#include <cstddef>

namespace tritax {

// Weights for the shares of a full link: lognormal with mean 1, without the outer half per cent on either
// side.
class ServiceWeights {
 public:
  // `spread`: relative standard deviation, 0 for equal service. Throws nothing; asserts spread >= 0.
  explicit ServiceWeights(double spread);

  // Quantile of the weights: a share `uniform` of all requesters has a lower weight, 0 <= uniform < 1.
  double at(double uniform) const {
    const double place = uniform * (kEntries - 1);
    const auto below = static_cast<std::size_t>(place);
    return weights_[below] + (weights_[below + 1] - weights_[below]) * (place - static_cast<double>(below));
  }

  // The largest weight of that spread.
  static double highest(double spread);

 private:
  static constexpr std::size_t kEntries = 129;
  std::array<double, kEntries> weights_{};
};

}  // namespace tritax
