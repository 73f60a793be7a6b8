// Fused: one kernel, where some workgroups move heads, and the others attend as tokens arrive, and store
// results straight to their owners.
//
//   C workgroups, pushed:  for ranks d, r first: copy the part p that d attends to -> there;
//                          arrived[r] += 1 there
//                 pulled:  for ranks s, r first: wait until s has begun; copy part p from there;
//                          arrived[s] += 1
//   A workgroups:          for tiles: wait for their queries; for ranks s, r first: wait arrived[s] = C;
//                          attend to its keys; store -> o of the owner
//                          tell all peers; the first one waits for all peers
#include <utility>

#include "model/workloads/ulysses_attention/movers.hpp"

namespace tritax {

namespace {

struct FusedFlags {
  std::int16_t begun = -1;     // (source), of pulling ranks
  std::int16_t arrived = -1;   // (source), counted by workgroups
  std::int16_t finished = -1;  // (source), counted by workgroups
};

void move_part(HeadsDraft& draft, const HeadMovers& movers, const FusedFlags& flags, int rank,
               std::int32_t p) {
  ScheduleBuilder& builder = draft.builder;
  const LockProtocol lock = draft.knobs.lock;
  if (p == 0 && flags.begun >= 0) {
    for (const int peer : peers_of(PeerOrder::rotated, draft.ranks(), rank, 0)) {
      builder.signal(flags.begun, rank, 1, peer, Scope::system, lock);
    }
  }
  for (const int other : own_first(draft, rank, p)) {
    if (draft.knobs.pull) {
      if (other != rank && flags.begun >= 0) builder.wait(flags.begun, other, 1, Scope::system, lock);
      move_to_heads(draft, movers, p, other, rank);
      builder.signal(flags.arrived, other, 1, rank, Scope::gpu, lock);
    } else {
      move_to_heads(draft, movers, p, rank, other);
      builder.signal(flags.arrived, rank, 1, other, Scope::system, lock);
    }
  }
}

void attend_as_they_come(HeadsDraft& draft, const HeadMovers& movers, const FusedFlags& flags, int rank,
                         const HeadTile& tile) {
  const Scope scope = draft.knobs.pull ? Scope::gpu : Scope::system;
  const auto await = [&](int source) {
    if (flags.arrived >= 0) draft.builder.wait(flags.arrived, source, movers.count, scope, draft.knobs.lock);
  };
  await(tile.owner);
  for (int step = 0; step < draft.ranks(); ++step) {
    const int source = (rank - step + draft.ranks()) % draft.ranks();
    if (!draft.sees(tile, source)) continue;
    if (source != tile.owner) await(source);
    draft.attend(tile, source);
  }
  draft.store(tile, rank, true);
}

}  // namespace

Schedule build_heads_fused(const SequenceAttention& problem, const Machine& machine,
                           const UlyssesKnobs& knobs) {
  HeadsDraft draft("fused", problem, machine, knobs, false);
  ScheduleBuilder& builder = draft.builder;
  HeadMovers movers = head_movers_of(draft);
  FusedFlags flags;
  if (draft.sends()) {
    flags.arrived = builder.flags("arrived", draft.ranks());
    if (!knobs.host_barriers) {
      flags.finished = builder.flags("finished", draft.ranks());
      if (knobs.pull) flags.begun = builder.flags("begun", draft.ranks());
    }
  } else {
    movers.count = 0;
  }
  Kernel kernel = draft.attend_kernel(0, "ulysses");
  kernel.placement = Placement::persistent;
  if (draft.sends()) {
    kernel.resources =
        with_copy_role(machine.gpu, kernel.resources, std::int64_t{movers.piece.row} * movers.piece.col);
  }
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    counts.push_back(attending(draft, kernel, rank, movers.count));
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    kernel.rank = rank;
    const std::int32_t id = builder.kernel(kernel);
    for (std::int32_t p = 0; p < movers.count; ++p) {
      builder.workgroup(id);
      move_part(draft, movers, flags, rank, p);
    }
    const std::vector<HeadTile> tiles = draft.tiles(rank);
    const std::size_t count = counts[static_cast<std::size_t>(rank)];
    for (std::size_t p = 0; p < count; ++p) {
      builder.workgroup(id);
      for (std::size_t i = p; i < tiles.size(); i += count) {
        attend_as_they_come(draft, movers, flags, rank, tiles[i]);
      }
      finish_attending(draft, rank, p == 0, flags.finished, counts);
    }
    host_program(builder, rank, knobs, {{id, 0}});
  }
  return builder.finish();
}

}  // namespace tritax
