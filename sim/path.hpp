// The account of the time of the path that led to a state.
#pragma once

#include "sim/simulate.hpp"

namespace tritax {

// An account, and the time up to which it accounts.
struct Path {
  TimeAccount account;
  double time_ns = 0;

  // Charges the time from the end of the path to `until_ns` to `part`.
  void charge(double TimeAccount::*part, double until_ns) {
    if (until_ns > time_ns) {
      account.*part += until_ns - time_ns;
      time_ns = until_ns;
    }
  }
};

}  // namespace tritax
