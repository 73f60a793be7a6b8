// Copy engine: as library, but copy engines move rows between GPUs instead of compute units, one copy per
// peer and way.
//
//   stream 0:      SORT: own tokens of own experts -> their place, the others -> sorted by GPU; record
//                  wait for the copies; one workgroup exchanges arrivals; REORDER: received -> by expert
//                  UP; DOWN; REORDER: own results -> back, the others -> by source; record
//                  wait for the copies; one workgroup exchanges arrivals; SUM
//   stream 1 + p:  wait for SORT; copy the rows for p -> received there
//                  wait for the second REORDER; copy the rows for p -> back there
//
// `received` is not in use when tokens of the next run arrive: their sender has seen the end of its own run,
// for which all ranks have sent their results.
#include <algorithm>

#include "model/machine/check_machine.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/workloads/moe/patterns.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kRowsOfMove = 16;  // rows that a workgroup copies at a time

struct RowMove {
  std::int16_t to = -1;
  std::int32_t to_row = 0;
  std::int16_t from = -1;
  std::int32_t from_row = 0;
  std::int32_t rows = 0;
};

void launch_moves(MoeDraft& draft, int rank, std::string_view name, const std::vector<RowMove>& moves) {
  ScheduleBuilder& builder = draft.builder;
  std::vector<RowMove> pieces;
  for (const RowMove& move : moves) {
    for (std::int32_t row = 0; row < move.rows; row += kRowsOfMove) {
      pieces.push_back({move.to, move.to_row + row, move.from, move.from_row + row,
                        std::min(kRowsOfMove, move.rows - row)});
    }
  }
  if (pieces.empty()) return;
  const std::int32_t id = row_kernel(builder, rank, name, false);
  const auto count =
      std::min(pieces.size(), static_cast<std::size_t>(kCopiesOfCu * draft.machine.gpu.cu_count()));
  for (std::size_t p = 0; p < count; ++p) {
    builder.workgroup(id);
    for (std::size_t i = p; i < pieces.size(); i += count) {
      const RowMove& piece = pieces[i];
      builder.copy(piece.to, {piece.to_row, 0, piece.rows, draft.buffers.cols}, rank, piece.from,
                   piece.from_row, 0, rank);
    }
  }
  builder.launch(rank, id);
}

// First row of a source's rows at an owner, by source.
std::int32_t row_by_source(const MoeDraft& draft, int owner, int source) {
  std::int32_t row = 0;
  for (int before = 0; before < source; ++before) row += draft.routes.rows_between(before, owner);
  return row;
}

// First row of an owner's rows at a source, by owner.
std::int32_t row_by_owner(const MoeDraft& draft, int source, int owner) {
  return draft.routes.source_begin(source, static_cast<int>(draft.routes.targets_of(owner).begin));
}

void sort_tokens(MoeDraft& draft, int rank) {
  const ExpertBuffers& buffers = draft.buffers;
  std::vector<RowMove> moves;
  for (const Routed& routed : draft.routes.of(rank)) {
    const bool own = draft.routes.owner(routed.target) == rank;
    moves.push_back({own ? buffers.at_owner : buffers.sorted, own ? routed.at_owner : routed.at_source,
                     buffers.tokens, routed.token, routed.rows});
  }
  launch_moves(draft, rank, "sort", moves);
}

// Reorders a rank's rows from the order by source to the order by expert, or back.
void reorder(MoeDraft& draft, int rank, bool to_experts) {
  const Routes& routes = draft.routes;
  const ExpertBuffers& buffers = draft.buffers;
  std::vector<RowMove> moves;
  for (int source = 0; source < draft.ranks(); ++source) {
    std::int32_t by_source = row_by_source(draft, rank, source);
    const Share own = routes.targets_of(rank);
    for (auto target = static_cast<int>(own.begin); target < own.end; ++target) {
      const std::int32_t rows = routes.rows(source, target);
      const std::int32_t by_expert = routes.owner_begin(source, target);
      if (source != rank && to_experts) {
        moves.push_back({buffers.at_owner, by_expert, buffers.received, by_source, rows});
      } else if (source != rank) {
        moves.push_back({buffers.to_return, by_source, buffers.results, by_expert, rows});
      } else if (!to_experts) {
        moves.push_back({buffers.back, routes.source_begin(rank, target), buffers.results, by_expert, rows});
      }
      by_source += rows;
    }
  }
  launch_moves(draft, rank, to_experts ? "reorder" : "reorder back", moves);
}

// Copies to all peers, and waits for the copies of all peers.
void exchange_by_engines(MoeDraft& draft, int rank, bool back, std::int16_t arrived) {
  if (!draft.sends()) return;
  ScheduleBuilder& builder = draft.builder;
  const ExpertBuffers& buffers = draft.buffers;
  const std::vector<int> peers = peers_of(PeerOrder::rotated, draft.ranks(), rank, 0);
  const std::int32_t first = back ? draft.ranks() + 1 : 0;  // event; the following events are of the peers
  builder.record_event(rank, first);
  for (const int peer : peers) {
    const int source = back ? peer : rank, owner = back ? rank : peer;
    const std::int32_t rows = draft.routes.rows_between(source, owner);
    if (rows == 0) continue;
    const std::int32_t at_source = row_by_owner(draft, source, owner);
    const std::int32_t at_owner = row_by_source(draft, owner, source);
    const Rect to{back ? at_source : at_owner, 0, rows, buffers.cols};
    builder.wait_event(rank, first, 1 + peer);
    builder.host_copy(rank, 1 + peer, back ? buffers.back : buffers.received, to, peer,
                      back ? buffers.to_return : buffers.sorted, back ? at_owner : at_source, 0, rank);
    builder.record_event(rank, first + 1 + peer, 1 + peer);
    builder.wait_event(rank, first + 1 + peer);
  }
  builder.launch(rank, telling_kernel(builder, back ? "tell back" : "tell", peers, draft.ranks(), rank,
                                      arrived, draft.knobs.lock));
}

}  // namespace

Schedule build_moe_copy_engine(const Moe& problem, const Machine& machine, const MoeKnobs& knobs) {
  if (problem.routing.gpus > 1) require_copy_engines(machine, "pattern 'copy-engine'");
  MoeDraft draft("copy-engine", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  std::int16_t there = -1, back = -1;
  if (draft.sends()) {
    const std::int32_t rows = draft.routes.most_rows_of_owner();
    draft.buffers.sorted =
        draft.add("sorted", problem.dtype, draft.routes.most_rows_of_source(), problem.hidden);
    draft.buffers.received = draft.add("received", problem.dtype, rows, problem.hidden);
    draft.buffers.to_return = draft.add("to return", product_dtype(problem.dtype), rows, problem.hidden);
    there = builder.flags("arrived", draft.ranks());
    back = builder.flags("arrived back", draft.ranks());
  }
  draft.add_back();
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    begin_run(draft, rank);
    sort_tokens(draft, rank);
    exchange_by_engines(draft, rank, false, there);
    reorder(draft, rank, true);
    draft.launch_product(rank, ExpertProduct::up);
    draft.launch_product(rank, ExpertProduct::down);
    reorder(draft, rank, false);
    exchange_by_engines(draft, rank, true, back);
    launch_sums(builder, draft.routes, draft.buffers, machine, rank);
    end_run(draft, rank);
  }
  return builder.finish();
}

}  // namespace tritax
