// Library baseline: model/parts/library_sum.hpp.
#include "model/parts/library_sum.hpp"
#include "model/workloads/gemm_all_reduce/patterns.hpp"

namespace tritax {

Schedule build_all_reduce_library(const PartialSums& problem, const Machine& machine, const SumKnobs& asked) {
  SumDraft draft = library_sum_draft("library", problem, machine, asked);
  add_library_sum(draft);
  return draft.builder.finish();
}

}  // namespace tritax
