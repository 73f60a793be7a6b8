// Division of whole numbers that rounds up: how many tiles of b rows cover a rows.
#pragma once

#include <concepts>
#include <type_traits>

namespace tritax {

// For a >= 0 and b > 0.
template <std::integral A, std::integral B>
constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

}  // namespace tritax
