// Fused: one kernel, where some workgroups move keys and values and the others attend. A tile of queries
// keeps its results in registers until it has seen all blocks, so that there are no partials.
//
//   workgroup 0:           open
//   C workgroups, pushed:  for i = 0 … W-2:  wait until the receiver is open; copy its part of a block there;
//                                            arrived[block] += 1 there
//       ring:              block r-i to rank r+1, once it is here
//       in turn, at once:  the own block to rank r+1+i; at once: workgroups begin at different receivers
//   pulled:                for i = 1 … W-1:  wait until rank r-i is open; copy its part of that block from
//                                            there; arrived[block] += 1; at last exchange arrivals
//   the others:            for tiles:  attend to the own block; for i = 1 … W-1: wait arrived[r-i] = C;
//                                      attend to block r-i; store
#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/attend_tiles.hpp"
#include "model/parts/collectives.hpp"
#include "model/parts/movers.hpp"
#include "model/workloads/ring_attention/patterns.hpp"

namespace tritax {

namespace {

struct Movers {
  std::int32_t count = 0;
  TileIndex piece;            // rows and columns
  std::int16_t arrived = -1;  // (source), counted by workgroups
  std::int16_t done = -1;     // (workgroup, rank), of pulling workgroups
};

// Moves part p of a block from one rank to another.
void move_part(RingDraft& draft, const Movers& movers, std::int32_t p, int block, int from, int to) {
  std::int32_t i = 0;
  for (const Rect& rect : draft.block(block)) {
    for (const Rect& piece : cut(rect, movers.piece.row, movers.piece.col)) {
      for (const std::int16_t buffer : {draft.k, draft.v}) {
        if (i++ % movers.count != p) continue;
        draft.builder.copy(buffer, piece, to, buffer, piece.row, piece.col, from);
      }
    }
  }
}

void push_blocks(RingDraft& draft, const Movers& movers, int rank, std::int32_t p) {
  const int peers = draft.ranks() - 1;
  const Route route = draft.knobs.route;
  for (int i = 0; i < peers; ++i) {
    const int turn = route == Route::at_once ? (i + p) % peers : i;
    const int to = route == Route::ring ? draft.next(rank) : (rank + 1 + turn) % draft.ranks();
    const int block = route == Route::ring ? draft.source(rank, i) : rank;
    if (block != rank) {
      draft.builder.wait(movers.arrived, block, movers.count, Scope::system, draft.knobs.lock);
    } else {
      draft.await_opened(to);
    }
    move_part(draft, movers, p, block, rank, to);
    draft.builder.signal(movers.arrived, block, 1, to, Scope::system, draft.knobs.lock);
  }
}

void pull_blocks(RingDraft& draft, const Movers& movers, int rank, std::int32_t p) {
  const int peers = draft.ranks() - 1;
  for (int i = 0; i < peers; ++i) {
    const int turn = draft.knobs.route == Route::at_once ? (i + p) % peers : i;
    const int from = draft.source(rank, 1 + turn);
    draft.await_opened(from);
    move_part(draft, movers, p, from, from, rank);
    draft.builder.signal(movers.arrived, from, 1, rank, Scope::gpu, draft.knobs.lock);
  }
  if (movers.done < 0) return;
  exchange_arrivals(draft.builder, peers_of(PeerOrder::rotated, draft.ranks(), rank, 0), draft.ranks(), rank,
                    p, movers.done, draft.knobs.lock);
}

void attend_tiles(RingDraft& draft, const Movers& movers, int rank, const std::vector<QueryTile>& tiles,
                  std::size_t first, std::size_t stride) {
  const Scope scope = draft.knobs.pull ? Scope::gpu : Scope::system;
  for (std::size_t i = first; i < tiles.size(); i += stride) {
    for (int step = 0; step < draft.ranks(); ++step) {
      const int from = draft.source(rank, step);
      if (!draft.sees(tiles[i], from)) continue;
      if (step > 0) draft.builder.wait(movers.arrived, from, movers.count, scope, draft.knobs.lock);
      draft.attend(tiles[i], from);
    }
    draft.builder.store(draft.o, tiles[i].rect, rank);
  }
}

Movers movers_of(RingDraft& draft) {
  Movers movers;
  if (!draft.sends()) return movers;
  const RingKnobs& knobs = draft.knobs;
  movers.count = knobs.comm_cus;
  movers.piece = piece_size(knobs);
  movers.arrived = draft.builder.flags("arrived", draft.ranks());
  if (knobs.pull && !knobs.host_barriers) {
    movers.done = draft.builder.flags("done", movers.count * draft.ranks());
  }
  return movers;
}

}  // namespace

Schedule build_ring_fused(const SequenceAttention& problem, const Machine& machine, const RingKnobs& knobs) {
  check_cus(knobs.comm_cus, "comm_cus", machine.gpu);
  if (knobs.pull && knobs.route == Route::ring && problem.gpus > 1) {
    throw UserError(
        "route: who passes a block on in a ring pushes it; with transport = pull the route is in-turn "
        "or at-once");
  }
  RingDraft draft("fused", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  draft.add_opened();
  const Movers movers = movers_of(draft);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::vector<QueryTile> tiles = draft.tiles(rank);
    Kernel kernel = draft.attend_kernel(rank, "ring_attention");
    kernel.placement = Placement::persistent;
    if (draft.sends()) {
      kernel.resources =
          with_copy_role(machine.gpu, kernel.resources, std::int64_t{movers.piece.row} * movers.piece.col);
    }
    const std::int32_t room = room_beside(machine.gpu, kernel.resources, movers.count, "attend");
    const std::int32_t id = builder.kernel(std::move(kernel));
    for (std::int32_t p = 0; p < movers.count; ++p) {
      builder.workgroup(id);
      if (p == 0) draft.open(rank);
      if (knobs.pull) {
        pull_blocks(draft, movers, rank, p);
      } else {
        push_blocks(draft, movers, rank, p);
      }
    }
    const std::size_t count = std::min(tiles.size(), static_cast<std::size_t>(room));
    for (std::size_t p = 0; p < count; ++p) {
      builder.workgroup(id);
      attend_tiles(draft, movers, rank, tiles, p, count);
    }
    host_program(builder, rank, knobs, {{id, 0}});
  }
  return builder.finish();
}

}  // namespace tritax
