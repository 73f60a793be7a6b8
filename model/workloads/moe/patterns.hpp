#pragma once

#include "model/workloads/moe/draft.hpp"

namespace tritax {

// Patterns with one kernel per step are in separate.cpp, patterns that fuse some or all steps in fused.cpp,
// copy engines in copy_engine.cpp.
Schedule build_moe_library(const Moe& problem, const Machine& machine, const MoeKnobs& knobs);
Schedule build_moe_direct(const Moe& problem, const Machine& machine, const MoeKnobs& knobs);
Schedule build_moe_copy_engine(const Moe& problem, const Machine& machine, const MoeKnobs& knobs);
Schedule build_moe_fused_dispatch(const Moe& problem, const Machine& machine, const MoeKnobs& knobs);
Schedule build_moe_fused_combine(const Moe& problem, const Machine& machine, const MoeKnobs& knobs);
Schedule build_moe_fused(const Moe& problem, const Machine& machine, const MoeKnobs& knobs);

// Kernels of `direct` that other patterns share. -1 for a flag array: nothing to signal.
struct MoeFlags {
  std::int16_t begun = -1;     // (workgroup, rank): tokens may be read
  std::int16_t sent = -1;      // (workgroup, rank): tokens have been stored
  std::int16_t ready = -1;     // (workgroup, rank): results may be read
  std::int16_t read = -1;      // (workgroup, rank): results have been read
  std::int16_t returned = -1;  // (source), counted by workgroups that send results
};
MoeFlags dispatch_flags(MoeDraft& draft, std::int32_t workgroups);
void return_flags(MoeDraft& draft, std::int32_t workgroups, MoeFlags& flags);
void launch_dispatch(MoeDraft& draft, int rank, std::int32_t workgroups, const MoeFlags& flags);
void launch_return(MoeDraft& draft, int rank, std::int32_t workgroups, const MoeFlags& flags);

void begin_run(MoeDraft& draft, int rank);
void end_run(MoeDraft& draft, int rank);

}  // namespace tritax
