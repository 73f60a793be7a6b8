// GEMM + all-scatter in the words of its tests: structs where the rest of the program has tables of values.
#pragma once

#include <string_view>

#include "model/parts/gemm_knobs.hpp"
#include "model/workloads/gemm_all_scatter/workload.hpp"

namespace tritax {

// All of them as somebody's wish.
inline Values values_of(const GemmKnobs& knobs) {
  Values values(gemm_all_scatter().knobs);
  give(values, knobs);
  return values;
}

inline Schedule build(const Pattern& pattern, const GemmAllScatter& gemm, const Machine& machine,
                      const GemmKnobs& knobs) {
  return build_schedule(pattern, problem_of(gemm), machine, values_of(knobs));
}

inline Schedule build(std::string_view pattern, const GemmAllScatter& gemm, const Machine& machine,
                      const GemmKnobs& knobs) {
  return build(find_pattern(gemm_all_scatter(), pattern, "test"), gemm, machine, knobs);
}

// What a search may try; `pins` may be empty.
inline KnobSpace knob_space(const Pattern& pattern, const GemmAllScatter& gemm, const Machine& machine,
                            const Values& pins = {}) {
  return gemm_all_scatter().space(pattern, problem_of(gemm), machine, pins);
}

}  // namespace tritax
