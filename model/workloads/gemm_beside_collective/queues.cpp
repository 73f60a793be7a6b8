// One kernel with two queues:
//
//   Gg workgroups:  draw tiles of C until there are none, then pieces of the collective
//   Gc workgroups:  draw pieces until there are none, then tiles of C
//   workgroup 0, at first:    tells all peers that it has begun; every workgroup waits for the peers before
//                             it draws pieces (not in an all-gather)
//   workgroup 0, at the end:  waits until all peers have moved all pieces that touch its memory
//
// A workgroup with an empty queue helps with the other queue, so that the split only sets what is begun
// first. The protocol is that of ROCm/iris iris/concurrent/_kernels.py: one atomic counter per queue; its
// collectives are those of draft.hpp. A piece raises a counter of each peer whose memory it read or wrote.
#include <algorithm>

#include "model/workloads/gemm_beside_collective/draft.hpp"

namespace tritax {

namespace {

struct Flags {
  std::int16_t queue = -1;    // tiles, pieces
  std::int16_t opened = -1;   // ranks that have begun; where none has to say so: -1
  std::int16_t arrived = -1;  // moved pieces of a rank; none with host barriers
};

struct Queues {
  std::int32_t tiles = 0;   // items [0, tiles) are tiles of C
  std::int32_t pieces = 0;  // the next `pieces` items are pieces
};

// Whether a piece of `rank` reads or writes the memory of `peer`.
bool touches(const BesideDraft& draft, const BesidePiece& piece, int peer) {
  return draft.problem.collective != BesideCollective::all_to_all || piece.to == peer;
}

void tell_peers(BesideDraft& draft, const BesidePiece& piece, std::int32_t index, int rank,
                std::int16_t arrived) {
  for (const int peer : draft.peers_of(rank, index)) {
    if (touches(draft, piece, peer))
      draft.builder.signal(arrived, rank, 1, peer, Scope::system, draft.knobs.lock);
  }
}

Queues add_items(BesideDraft& draft, int rank, std::int32_t kernel, const Flags& flags) {
  Queues queues;
  for (const Rect& tile : tiles_of_c(draft)) {
    draft.builder.item(kernel);
    multiply(draft, tile, rank);
    ++queues.tiles;
  }
  if (draft.problem.gathers() && !draft.sends()) return queues;
  for (const BesidePiece& piece : pieces_of(draft, rank)) {
    draft.builder.item(kernel);
    move(draft, piece, queues.pieces, rank);
    if (flags.arrived >= 0) tell_peers(draft, piece, queues.pieces, rank, flags.arrived);
    ++queues.pieces;
  }
  return queues;
}

// Waits of the own rank for all pieces of peers that touch its memory.
void await_peers(BesideDraft& draft, int rank, std::int16_t arrived) {
  for (const int peer : draft.peers_of(rank, 0)) {
    const std::vector<BesidePiece> pieces = pieces_of(draft, peer);
    const auto count = std::count_if(pieces.begin(), pieces.end(),
                                     [&](const BesidePiece& piece) { return touches(draft, piece, rank); });
    draft.builder.wait(arrived, peer, static_cast<std::int32_t>(count), Scope::system, draft.knobs.lock);
  }
}

}  // namespace

Schedule build_beside_queues(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs) {
  BesideDraft draft("work-queues", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  const Split split = split_cus(knobs, machine.gpu, draft.ranks(), Roles::in_one_kernel);
  Flags flags{builder.flags("queue", 2)};
  if (draft.opens()) flags.opened = builder.flags("opened", draft.ranks());
  if (draft.tells()) flags.arrived = builder.flags("arrived", draft.ranks());
  const TileIndex size = piece_of(draft);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = "gemm-and-move";
    kernel.rank = rank;
    kernel.resources = with_copy_role(machine.gpu, draft.gemm_resources, std::int64_t{size.row} * size.col);
    kernel.tile = draft.tile;
    kernel.placement = Placement::persistent;
    const std::int32_t id = builder.kernel(std::move(kernel));
    const Queues queues = add_items(draft, rank, id, flags);
    const std::vector<int> peers = draft.peers_of(rank, 0);
    const auto draw_tiles = [&] { builder.claim_items(flags.queue, 0, 0, queues.tiles); };
    const auto draw_pieces = [&] {
      if (queues.pieces == 0) return;
      for (const int peer : peers) {
        if (flags.opened >= 0) builder.wait(flags.opened, peer, 1, Scope::system, knobs.lock);
      }
      builder.claim_items(flags.queue, 1, queues.tiles, queues.pieces);
    };
    for (std::int32_t p = 0; p < split.gemm + split.comm; ++p) {
      builder.workgroup(id);
      for (const int peer : peers) {
        if (p == 0 && flags.opened >= 0)
          builder.signal(flags.opened, rank, 1, peer, Scope::system, knobs.lock);
      }
      if (p < split.gemm) draw_tiles();
      draw_pieces();
      if (p >= split.gemm) draw_tiles();
      if (p == 0 && flags.arrived >= 0) await_peers(draft, rank, flags.arrived);
    }
    host_program(builder, rank, knobs, {{id, 0}});
  }
  return builder.finish();
}

}  // namespace tritax
