// Copy engine: as chunked, but copy engines send the chunks instead of compute units.
//
//   stream 0:      for chunks i:  GEMM of chunk i; record event i
//                  wait for the last copies of all streams; one workgroup exchanges arrivals
//   stream 1 + p:  for chunks i:  wait for event i; copy the block of p out of `staged` -> C at p
//
// A block is columns of a wider matrix: one copy of rows at a stride.
#include <fmt/format.h>

#include "model/machine/check_machine.hpp"
#include "model/workloads/gemm_all_to_all/draft.hpp"

namespace tritax {

namespace {

void post_copies(ExchangeDraft& draft, int rank, std::int32_t chunk) {
  const Share rows = chunk_of(draft, rank, chunk);
  for (const int peer : draft.peers_of(rank, 0)) {
    const Share columns = own_columns(draft.problem, peer);
    const OwnedTile block{{static_cast<std::int32_t>(rows.begin), static_cast<std::int32_t>(columns.begin),
                           static_cast<std::int32_t>(rows.size()), static_cast<std::int32_t>(columns.size())},
                          peer};
    draft.builder.wait_event(rank, chunk, 1 + peer);
    draft.builder.host_copy(rank, 1 + peer, draft.c, draft.place_in_c(rank, block), peer, draft.staged,
                            block.rect.row, block.rect.col, rank);
  }
}

// Runs behind all copies of a rank.
void end_of_copies(ExchangeDraft& draft, int rank) {
  if (draft.arrived < 0) return;
  ScheduleBuilder& builder = draft.builder;
  for (const int peer : draft.peers_of(rank, 0)) {
    const std::int32_t event = draft.knobs.chunks + peer;
    builder.record_event(rank, event, 1 + peer);
    builder.wait_event(rank, event);
  }
  builder.launch(rank, telling_kernel(builder, "tell", draft.peers_of(rank, 0), draft.ranks(), rank,
                                      draft.arrived, draft.knobs.lock));
}

}  // namespace

Schedule build_exchange_copy_engine(const GemmAllToAll& problem, const Machine& machine,
                                    const ExchangeKnobs& knobs) {
  if (problem.gpus > 1) require_copy_engines(machine, "pattern 'copy-engine'");
  ExchangeDraft draft("copy-engine", problem, machine, knobs);
  draft.add_staged();
  draft.add_arrived(1);
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t workgroups = all_cus(machine.gpu, knobs.gemm_cus);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    std::int32_t posted = 0;
    for (std::int32_t i = 0; i < knobs.chunks; ++i) {
      const Share rows = draft.sends() ? chunk_of(draft, rank, i) : Share{0, own_rows(problem, rank).size()};
      if (rows.size() == 0) break;
      builder.launch(rank, exchange_gemm(draft, rank, fmt::format("gemm-{}", i), rows, workgroups, false));
      if (!draft.sends()) break;
      builder.record_event(rank, i);
      // The host posts copies while the next GEMM is ready to run.
      if (i > 0) post_copies(draft, rank, posted++);
    }
    if (draft.sends()) post_copies(draft, rank, posted);
    end_of_copies(draft, rank);
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax
