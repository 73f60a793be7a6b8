// One kernel with two queues:
//
//   Gg workgroups:  draw tiles of C until there are none, then pieces to send
//   Gc workgroups:  draw pieces to send until there are none, then tiles of C
//   workgroup 0, at the end:  waits until all pieces of all peers have arrived
//
// A workgroup with an empty queue helps with the other queue, so that the split only sets what is begun
// first. The protocol is that of ROCm/iris iris/concurrent/_kernels.py: one atomic counter per queue. A piece
// goes to all peers, and raises a counter of each peer on arrival.
#include "model/workloads/gemm_beside_collective/draft.hpp"

namespace tritax {

namespace {

struct Flags {
  std::int16_t queue = -1;    // tiles, pieces
  std::int16_t arrived = -1;  // pieces that have arrived from a rank; none with host barriers
};

struct Queues {
  std::int32_t tiles = 0;   // items [0, tiles) are tiles of C
  std::int32_t pieces = 0;  // the next `pieces` items are pieces
};

Queues add_items(BesideDraft& draft, int rank, std::int32_t kernel, const Flags& flags) {
  Queues queues;
  for (const Rect& tile : tiles_of_c(draft)) {
    draft.builder.item(kernel);
    multiply(draft, tile, rank);
    ++queues.tiles;
  }
  for (const Rect& piece : pieces_of_block(draft, rank)) {
    draft.builder.item(kernel);
    send(draft, piece, queues.pieces, rank);
    if (flags.arrived >= 0) {
      for (const int peer : peers_of(draft.knobs.peer_order, draft.ranks(), rank, queues.pieces)) {
        draft.builder.signal(flags.arrived, rank, 1, peer, Scope::system, draft.knobs.lock);
      }
    }
    ++queues.pieces;
  }
  return queues;
}

}  // namespace

Schedule build_beside_queues(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs) {
  BesideDraft draft("work-queues", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  const Split split = split_cus(knobs, machine.gpu, draft.ranks(), Roles::in_one_kernel);
  const Flags flags{builder.flags("queue", 2),
                    knobs.host_barriers ? std::int16_t{-1} : builder.flags("arrived", draft.ranks())};
  const std::int64_t height = knobs.comm_tile_m > 0 ? knobs.comm_tile_m : draft.tile.m;
  const std::int64_t width = knobs.comm_tile_n > 0 ? knobs.comm_tile_n : draft.tile.n;
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = "gemm-and-send";
    kernel.rank = rank;
    kernel.resources = with_copy_role(machine.gpu, draft.gemm_resources, height * width);
    kernel.tile = draft.tile;
    kernel.placement = Placement::persistent;
    const std::int32_t id = builder.kernel(std::move(kernel));
    const Queues queues = add_items(draft, rank, id, flags);
    const auto draw_tiles = [&] { builder.claim_items(flags.queue, 0, 0, queues.tiles); };
    const auto draw_pieces = [&] { builder.claim_items(flags.queue, 1, queues.tiles, queues.pieces); };
    for (std::int32_t p = 0; p < split.gemm + split.comm; ++p) {
      builder.workgroup(id);
      if (p < split.gemm) draw_tiles();
      draw_pieces();
      if (p >= split.gemm) draw_tiles();
      if (p > 0 || flags.arrived < 0) continue;
      for (const int peer : peers_of(knobs.peer_order, draft.ranks(), rank, 0)) {
        builder.wait(flags.arrived, peer, queues.pieces, Scope::system, knobs.lock);
      }
    }
    host_program(builder, rank, knobs, {{id, 0}});
  }
  return builder.finish();
}

}  // namespace tritax
