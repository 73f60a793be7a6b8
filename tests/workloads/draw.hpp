// Random values for properties that do not grow with the size of the test.
#pragma once

#include <rapidcheck.h>

namespace tritax {

// Uniform in [low, high], whatever the size of the test.
inline int between(int low, int high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}
inline bool coin() { return between(0, 1) == 1; }

}  // namespace tritax
