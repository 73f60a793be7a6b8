// Copy engine: copy engines move heads straight from one layout to the other, as rows at a stride, instead of
// compute units.
//
//   stream 1 + p:  copy the part of Q, K and V that p attends to -> qh, kh, vh there, p the own rank last
//                  wait for ATTENTION; copy the results of p's tokens -> o there
//   stream 0:      wait for the copies; one workgroup exchanges arrivals
//                  ATTENTION: a workgroup per tile: attend to all its keys; store into oh
//                  wait for the copies; one workgroup exchanges arrivals
#include "model/machine/check_machine.hpp"
#include "model/workloads/ulysses_attention/patterns.hpp"

namespace tritax {

namespace {

// Events of a rank: of the copies to each rank, by heads and then by tokens, and of attention.
std::int32_t copied_event(const HeadsDraft& draft, int to, bool back) {
  return back ? draft.ranks() + to : to;
}
std::int32_t attended_event(const HeadsDraft& draft) { return 2 * draft.ranks(); }

std::vector<int> own_last(const HeadsDraft& draft, int rank) {
  std::vector<int> all = peers_of(draft.knobs.peer_order, draft.ranks(), rank, 0);
  all.push_back(rank);
  return all;
}

// Runs behind all copies of a rank: tells the other ranks, and waits for their copies.
void meet_copies(HeadsDraft& draft, int rank, bool back, std::int16_t arrived) {
  ScheduleBuilder& builder = draft.builder;
  for (const int to : own_last(draft, rank)) {
    builder.record_event(rank, copied_event(draft, to, back), 1 + to);
    builder.wait_event(rank, copied_event(draft, to, back));
  }
  if (arrived < 0) return;
  builder.launch(rank, telling_kernel(builder, back ? "tell tokens" : "tell heads",
                                      peers_of(PeerOrder::rotated, draft.ranks(), rank, 0), draft.ranks(),
                                      rank, arrived, draft.knobs.lock));
}

void copy_to_heads(HeadsDraft& draft, int rank) {
  for (const int to : own_last(draft, rank)) {
    for (const HeadTensor& tensor : draft.inputs) {
      const Rect from = draft.by_tokens(tensor, rank, to);
      draft.builder.host_copy(rank, 1 + to, tensor.by_heads, draft.by_heads(tensor, rank, to), to, tensor.own,
                              from.row, from.col, rank);
    }
  }
}

void copy_to_tokens(HeadsDraft& draft, int rank) {
  const HeadTensor& tensor = draft.results;
  draft.builder.record_event(rank, attended_event(draft));
  for (const int to : own_last(draft, rank)) {
    const Rect from = draft.by_heads(tensor, to, rank);
    draft.builder.wait_event(rank, attended_event(draft), 1 + to);
    draft.builder.host_copy(rank, 1 + to, tensor.own, draft.by_tokens(tensor, to, rank), to, tensor.by_heads,
                            from.row, from.col, rank);
  }
}

}  // namespace

Schedule build_heads_copy_engine(const SequenceAttention& problem, const Machine& machine,
                                 const UlyssesKnobs& knobs) {
  if (problem.gpus > 1) require_copy_engines(machine, "pattern 'copy-engine'");
  HeadsDraft draft("copy-engine", problem, machine, knobs, true);
  ScheduleBuilder& builder = draft.builder;
  std::int16_t heads = -1, tokens = -1;
  if (draft.sends()) heads = builder.flags("heads", draft.ranks());
  if (draft.sends() && !knobs.host_barriers) tokens = builder.flags("tokens", draft.ranks());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    if (draft.sends()) {
      copy_to_heads(draft, rank);
      meet_copies(draft, rank, false, heads);
    }
    const std::int32_t attention = builder.kernel(draft.attend_kernel(rank, "attention"));
    for (const HeadTile& tile : draft.tiles(rank)) {
      builder.workgroup(attention);
      draft.attend(tile);
      draft.store(tile, rank, false);
    }
    builder.launch(rank, attention);
    if (draft.sends()) {
      copy_to_tokens(draft, rank);
      meet_copies(draft, rank, true, tokens);
    }
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax
