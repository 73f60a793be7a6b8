#pragma once

#include "model/workloads/ring_attention/draft.hpp"

namespace tritax {

// Each pattern stands in its function: library.cpp, copy_engine.cpp, fused.cpp.
Schedule build_ring_library(const SequenceAttention& problem, const Machine& machine, const RingKnobs& knobs);
Schedule build_ring_library_streams(const SequenceAttention& problem, const Machine& machine,
                                    const RingKnobs& knobs);
Schedule build_ring_copy_engine(const SequenceAttention& problem, const Machine& machine,
                                const RingKnobs& knobs);
Schedule build_ring_fused(const SequenceAttention& problem, const Machine& machine, const RingKnobs& knobs);

}  // namespace tritax
