#pragma once

#include "model/workloads/ring_attention/draft.hpp"

namespace tritax {

// One builder per pattern, described in library.cpp, copy_engine.cpp and fused.cpp.
Schedule build_ring_library(const SequenceAttention& problem, const Machine& machine, const RingKnobs& knobs);
Schedule build_ring_library_streams(const SequenceAttention& problem, const Machine& machine,
                                    const RingKnobs& knobs);
Schedule build_ring_copy_engine(const SequenceAttention& problem, const Machine& machine,
                                const RingKnobs& knobs);
Schedule build_ring_fused(const SequenceAttention& problem, const Machine& machine, const RingKnobs& knobs);

}  // namespace tritax
