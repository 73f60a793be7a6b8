// Fused sequential: every workgroup computes a tile and stores it to all ranks (arXiv:2511.12500 §4.2.1;
// ROCm/iris ex. 07).
//
//   G workgroups:  for t in p', p'+G, …: matmul; for q in ranks: store C(t) -> q   (q = own: the local store)
//
// C leaves the registers and is never read again; there are no locks. Stores drain behind the next tile's
// matmul; the last round pays for both. Behind an all-gather, a kernel of one workgroup tells the peers that
// the data are there, and waits for theirs.

#include "model/workloads/gemm_all_scatter/draft.hpp"

namespace tritax {

Schedule build_fused_sequential(const GemmAllScatter& gemm, const Machine& machine, const SumKnobs& knobs) {
  PatternDraft draft("fused-sequential", gemm, machine, knobs);
  const std::int32_t workgroups = all_cus(machine.gpu, knobs.gemm_cus);
  const ProductShares shares = shares_of(draft, workgroups);
  draft.add_arrived(1);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = "gemm_scatter";
    kernel.rank = rank;
    kernel.resources = draft.gemm_resources;
    kernel.tile = draft.tile;
    kernel.placement = Placement::persistent;
    const std::int32_t id = draft.builder.kernel(std::move(kernel));
    for (std::int32_t p = 0; p < workgroups; ++p) {
      const std::vector<int> destinations = ranks_from(knobs.peer_order, draft.ranks(), rank, p);
      draft.builder.workgroup(id);
      compute_tiles(draft, shares, rank, draft.first_item(p, workgroups), [&](std::int32_t t) {
        add_by_peer(draft.builder, knobs.serves, [&] {
          for (const int to : destinations) draft.builder.store(draft.c, draft.gemm_tile(rank, t), to);
        });
      });
    }
    Graph kernels{{id, 0}};
    if (draft.arrived >= 0) {
      kernels.push_back({telling_kernel(draft.builder, "tell", draft.peers_of(rank, 0), draft.ranks(), rank,
                                        draft.arrived, knobs.lock),
                         0});
    }
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax
