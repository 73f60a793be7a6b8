#include "model/parts/sum_patterns.hpp"
#include "model/workloads/gemm_all_reduce/patterns.hpp"

namespace tritax {

Schedule build_all_reduce_atomics(const PartialSums& problem, const Machine& machine, const SumKnobs& knobs) {
  SumDraft draft("fused-atomics", problem, machine, knobs, true, problem.dtype);
  add_onto_sums(draft, Onto::atomics);
  return draft.builder.finish();
}

}  // namespace tritax
