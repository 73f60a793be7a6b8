#pragma once

#include "model/workloads/flash_decode/draft.hpp"

namespace tritax {

// One builder per exchange of partials between GPUs; patterns.cpp describes each pattern at its function.
Schedule build_decode_library(const FlashDecode& problem, const Machine& machine, const DecodeKnobs& knobs);
Schedule build_decode_unfused(const FlashDecode& problem, const Machine& machine, const DecodeKnobs& knobs);
Schedule build_decode_fused_wait(const FlashDecode& problem, const Machine& machine,
                                 const DecodeKnobs& knobs);
Schedule build_decode_fully_fused(const FlashDecode& problem, const Machine& machine,
                                  const DecodeKnobs& knobs);

}  // namespace tritax
