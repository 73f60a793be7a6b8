#include "model/workloads/ulysses_attention/movers.hpp"

#include <algorithm>
#include <utility>

#include "model/parts/collectives.hpp"
#include "model/parts/movers.hpp"

namespace tritax {

namespace {

// Moves part p of a rectangle of `from_buffer` to the place that begins at `to`.
void move_pieces(HeadsDraft& draft, const HeadMovers& movers, std::int32_t p, std::int16_t to_buffer,
                 const Rect& to, int to_rank, std::int16_t from_buffer, const Rect& from, int from_rank) {
  std::int32_t i = 0;
  for (const Rect& piece : cut(from, movers.piece.row, movers.piece.col)) {
    if (i++ % movers.count != p) continue;
    const Rect place{to.row + piece.row - from.row, to.col + piece.col - from.col, piece.rows, piece.cols};
    draft.builder.copy(to_buffer, place, to_rank, from_buffer, piece.row, piece.col, from_rank);
  }
}

}  // namespace

HeadMovers head_movers_of(const HeadsDraft& draft) {
  const UlyssesKnobs& knobs = draft.knobs;
  check_cus(knobs.comm_cus, "comm_cus", draft.machine.gpu);
  return {knobs.comm_cus, piece_size(knobs)};
}

void move_to_heads(HeadsDraft& draft, const HeadMovers& movers, std::int32_t p, int tokens_of, int heads_of) {
  for (const HeadTensor& tensor : draft.inputs) {
    move_pieces(draft, movers, p, tensor.by_heads, draft.by_heads(tensor, tokens_of, heads_of), heads_of,
                tensor.own, draft.by_tokens(tensor, tokens_of, heads_of), tokens_of);
  }
}

void move_to_tokens(HeadsDraft& draft, const HeadMovers& movers, std::int32_t p, int tokens_of,
                    int heads_of) {
  const HeadTensor& tensor = draft.results;
  move_pieces(draft, movers, p, tensor.own, draft.by_tokens(tensor, tokens_of, heads_of), tokens_of,
              tensor.by_heads, draft.by_heads(tensor, tokens_of, heads_of), heads_of);
}

std::vector<int> own_first(const HeadsDraft& draft, int rank, std::int32_t p) {
  std::vector<int> all = peers_of(draft.knobs.peer_order, draft.ranks(), rank, p);
  all.insert(all.begin(), rank);
  return all;
}

std::int32_t moving_kernel(HeadsDraft& draft, const HeadMovers& movers, int rank, std::string_view name) {
  Kernel kernel;
  kernel.name = std::string(name);
  kernel.rank = rank;
  kernel.resources = tile_copy_resources(draft.machine.gpu, copy_resources().threads,
                                         std::int64_t{movers.piece.row} * movers.piece.col);
  kernel.placement = Placement::persistent;
  return draft.builder.kernel(std::move(kernel));
}

std::size_t attending(const HeadsDraft& draft, const Kernel& kernel, int rank, std::int32_t others) {
  const std::int32_t room = room_beside(draft.machine.gpu, kernel.resources, others, "attend");
  return std::min(draft.tiles(rank).size(), static_cast<std::size_t>(room));
}

void finish_attending(HeadsDraft& draft, int rank, bool first, std::int16_t finished,
                      const std::vector<std::size_t>& counts) {
  if (finished < 0) return;
  const std::vector<int> peers = peers_of(PeerOrder::rotated, draft.ranks(), rank, 0);
  draft.builder.barrier();
  for (const int peer : peers) {
    draft.builder.signal(finished, rank, 1, peer, Scope::system, draft.knobs.lock);
  }
  if (!first) return;
  for (const int peer : peers) {
    draft.builder.wait(finished, peer, static_cast<std::int32_t>(counts[static_cast<std::size_t>(peer)]),
                       Scope::system, draft.knobs.lock);
  }
}

}  // namespace tritax
