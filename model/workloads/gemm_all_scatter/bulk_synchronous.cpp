// Bulk-synchronous: a GEMM kernel, then a scatter kernel in the same stream (arXiv:2511.12500 §4.1.1;
// ROCm/iris ex. 12).
//
//   GEMM, G workgroups:     for t in p', p'+G, …: matmul; store C(t)
//   SCATTER, G workgroups:  for t in p', p'+G, …: for peers: copy C(t) -> peer
//
// The kernel boundary is the only order between them; every tile is read again by the scatter.
//
// An all-gather can pull: its second kernel waits for the GEMMs of all peers and copies their C(t) here
// (ROCm/mori python/mori/ops/gemm_ag/kernels_lsa.py).

#include "model/workloads/gemm_all_scatter/draft.hpp"

namespace tritax {

namespace {

std::int32_t fetch_kernel(PatternDraft& draft, const ProductShares& shares, int rank, std::int32_t workgroups,
                          std::int16_t computed) {
  const std::int32_t id = copying_kernel(draft, "fetch", rank);
  std::vector<std::vector<CommItem>> items;  // by rank; the longest list is that of rank 0
  for (int from = 0; from < draft.ranks(); ++from) items.push_back(comm_items(draft, shares, from));
  for (std::int32_t q = 0; q < workgroups; ++q) {
    const std::vector<int> peers = draft.peers_of(rank, q);
    draft.builder.workgroup(id);
    exchange_arrivals(draft.builder, peers, draft.ranks(), rank, q, computed, draft.knobs.lock,
                      draft.knobs.serves);
    for (auto i = static_cast<std::size_t>(draft.first_item(q, workgroups)); i < items[0].size();
         i += static_cast<std::size_t>(workgroups)) {
      add_by_peer(draft.builder, draft.knobs.serves, [&] {
        for (const int peer : peers) {
          const std::vector<CommItem>& theirs = items[static_cast<std::size_t>(peer)];
          if (i >= theirs.size()) continue;
          const Rect& rect = theirs[i].rect;
          draft.builder.copy(draft.c, rect, rank, draft.c, rect.row, rect.col, peer);
        }
      });
    }
    end_of_sender(draft, rank, q, peers);
  }
  return id;
}

}  // namespace

Schedule build_bulk_synchronous(const GemmAllScatter& gemm, const Machine& machine, const SumKnobs& knobs) {
  constexpr std::int16_t no_lock = -1;
  PatternDraft draft("bulk-synchronous", gemm, machine, knobs);
  const ProductShares shares = shares_of(draft, all_cus(machine.gpu, knobs.gemm_cus));
  const std::int32_t copying = all_cus(machine.gpu, knobs.comm_cus);
  draft.add_arrived(copying);
  const bool pulls = knobs.transport == Transport::pull && draft.ranks() > 1;
  const std::int16_t computed =
      pulls ? draft.builder.flags("computed", copying * draft.ranks()) : std::int16_t{-1};
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels;
    kernels.push_back({gemm_kernel(draft, shares, rank, no_lock), 0});
    if (draft.ranks() > 1) {
      kernels.push_back({pulls ? fetch_kernel(draft, shares, rank, copying, computed)
                               : scatter_kernel(draft, shares, rank, copying, no_lock),
                         0});
    }
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax
