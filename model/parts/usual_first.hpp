// Axes of knob spaces for workloads without a GEMM of their own.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "model/workload/workload.hpp"

namespace tritax {

// An axis of a knob with few values: the value of `base` first, where a search begins, then the others. Only
// the value of `base` where it was given, or where the pattern does not use the knob.
Axis usual_first(const Pattern& pattern, const Values& base, std::string_view knob,
                 std::initializer_list<std::int64_t> others);

}  // namespace tritax
