// How unequal the service is that equal requesters get on a full link.
//
// Switches and memory controllers do not serve equal transfers equally. Stamps of 4,096 copies of equal tiles
// that fill the link between two H200 show rates that are independent from one copy of a workgroup to its
// next and distributed lognormally (scenarios/measured, microbenchmark `spread`). Without such differences
// workgroups that start together stay together: all send, then all compute, and a link idles half of the
// time.
#pragma once

#include <array>
#include <cstddef>

namespace tritax {

// Weights for the shares of a full link: lognormal with mean 1, without the outermost half per cent.
class ServiceWeights {
 public:
  // `spread`: relative standard deviation, 0 for equal service. Throws nothing; asserts spread >= 0.
  explicit ServiceWeights(double spread);

  // The weight that a share `uniform` of all requesters stays below, 0 <= uniform < 1.
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
