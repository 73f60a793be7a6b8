// One-shot: every rank adds up all of C itself, tile by tile, in the multiplying kernel.
//
//   G workgroups:  for t in p', p'+G, …:
//     push:  matmul; for peers: store -> own slot(t) there; arrived[t] += 1 there
//            wait arrived[t]; for peers: reduce their slot(t); store C(t)
//     pull:  matmul; store partial(t); for peers: arrived[t] += 1 there
//            wait arrived[t]; for peers: reduce partial(t) there; store C(t)           (ROCm/iris ex. 09)
//     multimem:  as pull, but the switch adds up partial(t) of all ranks
//
// One step instead of two, for W/2 times the bytes: for small C. The wait is in the loop; the awaited tile
// left the peers in the same round, so that the wait is short if all ranks began together.
#include <vector>

#include "model/workloads/gemm_all_reduce/patterns.hpp"

namespace tritax {

namespace {

struct Shot {
  std::int16_t slots = -1;  // push: all of C per source
  std::int16_t arrived = -1;
};

Rect slot_of(const SumDraft& draft, int source, Rect rect) {
  rect.row += source * static_cast<std::int32_t>(draft.problem.m);
  return rect;
}

void add_tile(SumDraft& draft, int rank, const SumTile& tile, const Shot& shot, bool first,
              std::int32_t workgroup) {
  ScheduleBuilder& builder = draft.builder;
  const bool pushed = draft.knobs.transport == Transport::push;
  const std::vector<int> peers = draft.peers_of(rank, workgroup);
  multiply(draft, rank, tile.rect);
  if (draft.sends()) {
    for (const int peer : peers) {
      if (first) await_opened(draft, peer);
    }
    if (!pushed) builder.store(draft.partial, tile.rect, rank);
    for (const int peer : peers) {
      if (pushed) builder.store(shot.slots, slot_of(draft, rank, tile.rect), peer);
    }
    for (const int peer : peers)
      builder.signal(shot.arrived, tile.number, 1, peer, Scope::system, draft.knobs.lock);
    builder.wait(shot.arrived, tile.number, draft.ranks() - 1, Scope::system, draft.knobs.lock);
    add_of_all(draft, [&] {
      // The own partial sum is in the accumulator, but the switch adds up those of all ranks.
      if (draft.knobs.transport == Transport::multimem) builder.load(draft.partial, tile.rect, rank);
      for (const int peer : peers) {
        if (pushed) {
          builder.reduce(shot.slots, slot_of(draft, peer, tile.rect), rank);
        } else {
          builder.reduce(draft.partial, tile.rect, peer);
        }
      }
    });
  }
  builder.store(draft.c, tile.rect, rank);
}

}  // namespace

Schedule build_all_reduce_one_shot(const PartialSums& problem, const Machine& machine,
                                   const SumKnobs& knobs) {
  SumDraft draft("one-shot", problem, machine, knobs, true);
  const std::vector<SumTile> tiles = whole_tiles(draft);
  Shot shot;
  if (draft.sends() && knobs.transport != Transport::push) draft.add_partial();
  if (draft.sends() && knobs.transport == Transport::push) {
    shot.slots = draft.builder.buffer({"slots", draft.wire_dtype(),
                                       static_cast<std::int32_t>(problem.m) * draft.ranks(),
                                       static_cast<std::int32_t>(problem.n), draft.tile.m, draft.tile.n});
  }
  if (draft.sends()) shot.arrived = draft.builder.flags("arrived", static_cast<std::int32_t>(tiles.size()));
  add_opened(draft);
  const std::int32_t workgroups = all_cus(machine.gpu, knobs.gemm_cus);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = "gemm_one_shot";
    kernel.rank = rank;
    kernel.resources = draft.gemm_resources;
    kernel.tile = draft.tile;
    kernel.placement = Placement::persistent;
    const std::int32_t id = draft.builder.kernel(std::move(kernel));
    for (std::int32_t p = 0; p < workgroups; ++p) {
      draft.builder.workgroup(id);
      tell_opened(draft, rank, p == 0);
      bool first = true;
      for (auto i = static_cast<std::size_t>(draft.first_item(p, workgroups)); i < tiles.size();
           i += static_cast<std::size_t>(workgroups)) {
        add_tile(draft, rank, tiles[i], shot, first, p);
        first = false;
      }
    }
    host_program(draft.builder, rank, knobs, {{id, 0}});
  }
  return draft.builder.finish();
}

}  // namespace tritax
