// Axes of knob spaces that workloads without a GEMM of their own share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "model/workload/workload.hpp"

namespace tritax {

// An axis of a knob that has few values: that of `base` first, where a search begins, then the others. That
// of `base` alone where somebody gave it, or where the pattern does not use it.
Axis usual_first(const Pattern& pattern, const Values& base, std::string_view knob,
                 std::initializer_list<std::int64_t> others);

}  // namespace tritax
