#include "model/workloads/rooted/draft.hpp"

#include <algorithm>
#include <string>

namespace tritax {

RootedDraft::RootedDraft(std::string_view pattern, const Problem& problem, const Machine& machine_,
                         const Values& values, double blocks)
    : collective(collective_of(problem)),
      machine(machine_),
      knobs(collective_knobs_of(values)),
      builder(std::string(pattern), collective.gpus),
      workgroups(all_cus(machine_.gpu, knobs.comm_cus)) {
  check_collective(collective, machine, knobs, blocks * collective.bytes());
}

Rect RootedDraft::block(int index) const {
  const auto rows = static_cast<std::int32_t>(collective.rows);
  return {index * rows, 0, rows, static_cast<std::int32_t>(collective.cols)};
}

std::int16_t RootedDraft::add_blocks(const char* name, int count) {
  const TileIndex piece = piece_size(knobs);
  const Rect one = block();
  return builder.buffer({name, collective.dtype, one.rows * count, one.cols, piece.row, piece.col});
}

void add_sides(RootedDraft& draft) {
  if (!draft.opens()) return;
  draft.opened = draft.builder.flags("opened", draft.ranks());
  draft.done = draft.builder.flags("done", draft.ranks());
}

namespace {

// All other ranks, beginning with the next, so that not all tell the same rank first.
std::vector<int> others_of(const RootedDraft& draft, int rank) {
  return peers_of(PeerOrder::rotated, draft.ranks(), rank, 0);
}

}  // namespace

void tell_movers(RootedDraft& draft, const Uses& uses, int rank, std::int32_t p) {
  if (draft.opened < 0 || p > 0) return;
  for (const int mover : others_of(draft, rank)) {
    if (uses(mover, rank))
      draft.builder.signal(draft.opened, rank, 1, mover, Scope::system, draft.knobs.lock);
  }
}

void await_other(RootedDraft& draft, int other) {
  if (draft.opened >= 0) draft.builder.wait(draft.opened, other, 1, Scope::system, draft.knobs.lock);
}

void tell_others(RootedDraft& draft, const Uses& uses, int rank, std::int32_t p) {
  if (draft.done < 0) return;
  for (const int other : others_of(draft, rank)) {
    if (uses(rank, other)) draft.builder.signal(draft.done, rank, 1, other, Scope::system, draft.knobs.lock);
  }
  for (const int mover : others_of(draft, rank)) {
    if (p == 0 && uses(mover, rank))
      draft.builder.wait(draft.done, mover, draft.workgroups, Scope::system, draft.knobs.lock);
  }
}

std::int32_t workgroups_of(const RootedDraft& draft, const Uses& uses, int rank, bool moves) {
  if (moves) return draft.workgroups;
  const std::vector<int> others = others_of(draft, rank);
  const bool waits = draft.opens() &&
                     std::any_of(others.begin(), others.end(), [&](int mover) { return uses(mover, rank); });
  return waits ? 1 : 0;
}

void expect(RootedDraft& draft, const Moves& moves) {
  for (const RootedMove& move : moves.list)
    draft.builder.expect_copy({moves.target, move.to, move.place}, {moves.source, move.from, move.block});
}

}  // namespace tritax
