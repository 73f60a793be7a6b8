// Bulk-synchronous: a kernel that fetches the other ranks' slices, then a GEMM in the same stream.
//
//   GATHER, Gc workgroups:  for blocks q, q+Gc, …: copy the block from its owner
//   GEMM, G workgroups:     for t in p', p'+G, …: matmul (all of K); store C(t)
//
// The kernel boundary is the only order between them. Slices are there from the start, so no rank waits for a
// peer.
#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

std::int32_t gather_kernel(GatherDraft& draft, int rank, std::int32_t workgroups) {
  Kernel kernel;
  kernel.name = "gather";
  kernel.rank = rank;
  kernel.resources =
      tile_copy_resources(draft.machine.gpu, copy_resources().threads, elements_of_block(draft.knobs));
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const auto blocks = blocks_to_fetch(draft, rank, 0, draft.grid().rows);
  for (std::int32_t q = 0; q < workgroups; ++q) {
    draft.builder.workgroup(id);
    for (auto i = static_cast<std::size_t>(q); i < blocks.size(); i += static_cast<std::size_t>(workgroups)) {
      fetch_block(draft, rank, *blocks[i]);
    }
  }
  return id;
}

}  // namespace

Schedule build_bulk_synchronous(const AllGatherGemm& problem, const Machine& machine,
                                const GatherKnobs& knobs) {
  if (knobs.multimem) return build_multimem(problem, machine, knobs);
  constexpr std::int16_t no_flags = -1;
  GatherDraft draft("bulk-synchronous", problem, machine, knobs);
  expect_product(draft, draft.a, true);
  const ProductShares shares = shares_of(draft, all_cus(machine.gpu, knobs.gemm_cus));
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Graph kernels;
    if (draft.ranks() > 1)
      kernels.push_back({gather_kernel(draft, rank, all_cus(machine.gpu, knobs.comm_cus)), 0});
    kernels.push_back({waiting_gemm_kernel(draft, shares, rank, no_flags, Scope::gpu), 0});
    host_program(draft.builder, rank, knobs, kernels);
  }
  return draft.builder.finish();
}

}  // namespace tritax
