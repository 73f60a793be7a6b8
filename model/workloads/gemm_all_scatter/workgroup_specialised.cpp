// Workgroup-specialised: one kernel, two roles (arXiv:2511.12500 §4.2.2; ROCm/iris ex. 10).
//
//   p' < Gg:         for t in p', p'+Gg, …: matmul; store C(t); signal lock[t] (gpu scope)
//   q = p' - Gg:     for t in q, q+Gc, …: wait lock[t]; for peers: copy C(t) -> peer
//                    barrier; for peers: arrived[q][own] += 1 at the peer (system scope)
//                    for peers: wait arrived[q][peer]
//
// As in Iris, the role follows from the workgroup number after the XCD remap, so that communicating
// workgroups are on the last dies. Registers and LDS are those of the larger role.

#include "model/workloads/gemm_all_scatter/draft.hpp"

namespace tritax {

Schedule build_workgroup_specialised(const GemmAllScatter& gemm, const Machine& machine,
                                     const SumKnobs& knobs) {
  PatternDraft draft("workgroup-specialised", gemm, machine, knobs);
  const Split split = split_cus(knobs, machine.gpu, draft.ranks(), Roles::in_one_kernel);
  const ProductShares shares = shares_of(draft, split.gemm);
  const bool sends = draft.ranks() > 1;
  const std::int16_t lock = sends ? draft.builder.flags("lock", draft.max_tiles()) : std::int16_t{-1};
  const std::int16_t arrived =
      sends ? draft.builder.flags("arrived", split.comm * draft.ranks()) : std::int16_t{-1};
  const std::int32_t workgroups = split.gemm + split.comm;
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = "specialised";
    kernel.rank = rank;
    kernel.resources = with_copy_role(machine.gpu, draft.gemm_resources, elements_of_comm_tile(draft));
    kernel.tile = draft.tile;
    kernel.placement = Placement::persistent;
    const std::int32_t id = draft.builder.kernel(std::move(kernel));
    const std::vector<CommItem> items = sends ? comm_items(draft, shares, rank) : std::vector<CommItem>{};
    for (std::int32_t p = 0; p < workgroups; ++p) {
      draft.builder.workgroup(id);
      const std::int32_t number = draft.first_item(p, workgroups);
      if (number < split.gemm) {
        compute_and_store_tiles(draft, shares, rank, number, lock);
        continue;
      }
      const std::int32_t q = number - split.gemm;
      const std::vector<int> peers = draft.peers_of(rank, q);
      for (auto i = static_cast<std::size_t>(q); i < items.size(); i += split.comm) {
        send_item(draft, rank, items[i], peers, lock);
      }
      exchange_arrivals(draft.builder, peers, draft.ranks(), rank, q, arrived, knobs.lock);
    }
    host_program(draft.builder, rank, knobs, {{id, 0}});
  }
  return draft.builder.finish();
}

}  // namespace tritax
