// Fused stores: every workgroup stores the tile in its registers straight to the owner.
//
//   G workgroups:  for tiles of the peers, then own ones, p', p'+G, …:  matmul; store -> C of the owner
//                  exchange arrivals with the counterparts of all peers
//
// No tile is read again or copied. Stores drain behind the next tile's matmul; the last round is local.
#include "model/workloads/gemm_all_to_all/draft.hpp"

namespace tritax {

Schedule build_exchange_fused(const GemmAllToAll& problem, const Machine& machine,
                              const ExchangeKnobs& knobs) {
  ExchangeDraft draft("fused-stores", problem, machine, knobs);
  const std::int32_t workgroups = all_cus(machine.gpu, knobs.gemm_cus);
  draft.add_arrived(workgroups);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const Share rows{0, own_rows(problem, rank).size()};
    host_program(draft.builder, rank, knobs,
                 {{exchange_gemm(draft, rank, "gemm_all_to_all", rows, workgroups, true), 0}});
  }
  return draft.builder.finish();
}

}  // namespace tritax
