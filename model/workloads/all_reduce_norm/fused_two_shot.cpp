#include <algorithm>
#include <vector>

#include "model/workloads/all_reduce_norm/patterns.hpp"

namespace tritax {

namespace {

struct FusedRows {
  std::int16_t arrived = -1;  // push: one per row
  std::int16_t ready = -1;    // pull: (workgroup, rank)
  std::int32_t workgroups = 1;
};

struct RowOf {
  int owner = 0;
  std::int32_t row = 0;
};

FusedRows add_fused_rows(SumDraft& draft) {
  const auto m = static_cast<std::int32_t>(draft.problem.m);
  FusedRows fused;
  fused.workgroups = std::min(all_cus(draft.machine.gpu, draft.knobs.comm_cus), m);
  if (draft.sends() && draft.knobs.transport == Transport::push) {
    draft.add_slots();
    add_opened(draft);
    fused.arrived = draft.builder.flags("arrived", m);
  } else if (draft.opens()) {
    fused.ready = draft.builder.flags("ready", fused.workgroups * draft.ranks());
  }
  if (draft.opens()) add_done(draft, fused.workgroups);
  return fused;
}

// Rows of the peers in turn: the first row of each peer, the second of each, ….
std::vector<RowOf> rows_of_peers(const SumDraft& draft, int rank) {
  std::vector<RowOf> rows;
  const std::vector<int> peers = draft.peers_of(rank, 0);
  for (std::int32_t i = 0; i < block_of(draft.problem, 0).rows; ++i) {
    for (const int peer : peers) {
      const Rect block = block_of(draft.problem, peer);
      if (i < block.rows) rows.push_back({peer, block.row + i});
    }
  }
  return rows;
}

void push_rows(SumDraft& draft, const FusedRows& fused, int rank, std::int32_t p) {
  const std::vector<RowOf> rows = rows_of_peers(draft, rank);
  std::vector<bool> opened(static_cast<std::size_t>(draft.ranks()), false);
  for (auto i = static_cast<std::size_t>(p); i < rows.size();
       i += static_cast<std::size_t>(fused.workgroups)) {
    const auto [owner, row] = rows[i];
    await_opened_once(draft, opened, owner);
    draft.builder.copy(draft.slots, draft.place_in_slot(owner, rank, row_of(draft, row)), owner,
                       draft.partial, row, 0, rank);
    draft.builder.signal(fused.arrived, row, 1, owner, Scope::system, draft.knobs.lock);
  }
}

void add_own_rows(SumDraft& draft, const NormRows& norm, const FusedRows& fused, int rank, std::int32_t p) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<int> peers = draft.peers_of(rank, p);
  const Rect block = block_of(draft.problem, rank);
  for (std::int32_t row = block.row + p; row < block.row + block.rows; row += fused.workgroups) {
    if (fused.arrived >= 0)
      builder.wait(fused.arrived, row, draft.ranks() - 1, Scope::system, draft.knobs.lock);
    add_up_norm_row(draft, norm, draft.slots, rank, row, peers);
    const Rect whole = row_of(draft, row);
    store_sum(draft, rank, whole, p);
    builder.rms_norm(norm.weights, row_of(draft, 0), rank);
    add_of_all(draft, [&] {
      builder.store(norm.normed, whole, rank);
      for (const int peer : peers) builder.store(norm.normed, whole, peer);
    });
  }
}

std::int32_t fused_kernel(SumDraft& draft, const NormRows& norm, const FusedRows& fused, int rank) {
  const std::int32_t id = norm_rows_kernel(draft, "reduce_scatter_rms_norm_all_gather", rank);
  for (std::int32_t p = 0; p < fused.workgroups; ++p) {
    draft.builder.workgroup(id);
    tell_opened(draft, rank, p == 0);
    if (fused.ready >= 0) {
      exchange_arrivals(draft.builder, draft.peers_of(rank, p), draft.ranks(), rank, p, fused.ready,
                        draft.knobs.lock, draft.knobs.serves);
    }
    if (fused.arrived >= 0) push_rows(draft, fused, rank, p);
    add_own_rows(draft, norm, fused, rank, p);
    exchange_done(draft, rank, p);
  }
  return id;
}

}  // namespace

void add_fused_two_shot(SumDraft& draft, const NormRows& norm) {
  const FusedRows fused = add_fused_rows(draft);
  for (int rank = 0; rank < draft.ranks(); ++rank)
    host_program(draft.builder, rank, draft.knobs, {{fused_kernel(draft, norm, fused, rank), 0}});
}

}  // namespace tritax
