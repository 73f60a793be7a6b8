// Where the time of the path that led to some state went.
#pragma once

#include "sim/simulate.hpp"

namespace tritax {

// An account together with the time up to which it accounts.
struct Path {
  TimeAccount account;
  double time_ns = 0;

  // Everything from the time of the path to `until_ns` belongs to `part`.
  void charge(double TimeAccount::*part, double until_ns) {
    if (until_ns > time_ns) {
      account.*part += until_ns - time_ns;
      time_ns = until_ns;
    }
  }
};

}  // namespace tritax
