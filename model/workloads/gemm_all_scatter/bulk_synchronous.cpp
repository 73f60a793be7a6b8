// Bulk-synchronous: a GEMM kernel, then a scatter kernel in the same stream (arXiv:2511.12500 §4.1.1;
// ROCm/iris ex. 12).
//
//   GEMM, G workgroups:     for t in p', p'+G, …: matmul; store C(t)
//   SCATTER, G workgroups:  for t in p', p'+G, …: for peers: copy C(t) -> peer
//
// The kernel boundary is the only order between them; every tile is read again by the scatter.

#include "model/workloads/gemm_all_scatter/draft.hpp"

namespace tritax {

Schedule build_bulk_synchronous(const GemmAllScatter& gemm, const Machine& machine,
                                const SharingKnobs& knobs) {
  constexpr std::int16_t no_lock = -1;
  PatternDraft draft("bulk-synchronous", gemm, machine, knobs);
  const ProductShares shares = shares_of(draft, all_cus(machine.gpu, knobs.gemm_cus));
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels;
    kernels.push_back({gemm_kernel(draft, shares, rank, no_lock), 0});
    if (draft.ranks() > 1) {
      kernels.push_back(
          {scatter_kernel(draft, shares, rank, all_cus(machine.gpu, knobs.comm_cus), no_lock), 0});
    }
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax
