#pragma once

#include "model/workloads/ulysses_attention/draft.hpp"

namespace tritax {

// One builder per pattern, described in library.cpp, own_kernels.cpp, copy_engine.cpp and fused.cpp.
Schedule build_heads_library(const SequenceAttention& problem, const Machine& machine,
                             const UlyssesKnobs& knobs);
Schedule build_heads_direct(const SequenceAttention& problem, const Machine& machine,
                            const UlyssesKnobs& knobs);
Schedule build_heads_copy_engine(const SequenceAttention& problem, const Machine& machine,
                                 const UlyssesKnobs& knobs);
Schedule build_heads_fused_results(const SequenceAttention& problem, const Machine& machine,
                                   const UlyssesKnobs& knobs);
Schedule build_heads_fused(const SequenceAttention& problem, const Machine& machine,
                           const UlyssesKnobs& knobs);

}  // namespace tritax
