// Producer-consumer: GEMM and scatter kernels on two streams, with one lock per tile (arXiv:2511.12500
// §4.1.2; ROCm/iris ex. 11).
//
//   stream 0, GEMM, Gg workgroups:     for t in p', p'+Gg, …: matmul; store C(t); signal lock[t] (gpu scope)
//   stream 1, SCATTER, Gc workgroups:  for t in q', q'+Gc, …: wait lock[t]; for peers: copy C(t) -> peer
//
// Each kernel has its own register and LDS budget, but both grids must be resident together.

#include "model/workloads/gemm_all_scatter/draft.hpp"

namespace tritax {

Schedule build_producer_consumer(const GemmAllScatter& gemm, const Machine& machine, const SumKnobs& knobs) {
  PatternDraft draft("producer-consumer", gemm, machine, knobs);
  const Split split = split_cus(knobs, machine.gpu, draft.ranks(), Roles::in_two_kernels);
  const ProductShares shares = shares_of(draft, split.gemm);
  const bool sends = draft.ranks() > 1;
  const std::int16_t lock = sends ? draft.builder.flags("lock", draft.max_tiles()) : std::int16_t{-1};
  draft.add_arrived(split.comm);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels;
    kernels.push_back({gemm_kernel(draft, shares, rank, lock), 0});
    if (sends) kernels.push_back({scatter_kernel(draft, shares, rank, split.comm, lock), 1});
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax
