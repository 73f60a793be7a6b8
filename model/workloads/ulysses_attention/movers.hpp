// Workgroups of an own kernel that move heads between ranks, straight from one layout into the other.
#pragma once

#include "model/parts/grid_order.hpp"
#include "model/workloads/ulysses_attention/patterns.hpp"

namespace tritax {

struct HeadMovers {
  std::int32_t count = 0;  // workgroups
  TileIndex piece;         // rows and columns of what they move at a time
};
// Throws UserError for more workgroups than compute units.
HeadMovers head_movers_of(const HeadsDraft& draft);

// Part p of what goes between a rank's tokens and another's heads, by workgroups of either.
void move_to_heads(HeadsDraft& draft, const HeadMovers& movers, std::int32_t p, int tokens_of, int heads_of);
void move_to_tokens(HeadsDraft& draft, const HeadMovers& movers, std::int32_t p, int tokens_of, int heads_of);

// The own rank, then all peers in the order of the knob.
std::vector<int> own_first(const HeadsDraft& draft, int rank, std::int32_t p);

// A persistent kernel of movers, without its workgroups.
std::int32_t moving_kernel(HeadsDraft& draft, const HeadMovers& movers, int rank, std::string_view name);

// Attending workgroups of a persistent kernel that stores results straight to their owners: as many as fit
// beside `others`, and no more than tiles. Throws UserError if none does.
std::size_t attending(const HeadsDraft& draft, const Kernel& kernel, int rank, std::int32_t others);

// The end of such a workgroup: it tells all peers that what it had for them is there. The first one waits for
// all of theirs. `finished`: flags (source); -1: hosts say when all is over. `counts`: attending workgroups
// by rank.
void finish_attending(HeadsDraft& draft, int rank, bool first, std::int16_t finished,
                      const std::vector<std::size_t>& counts);

}  // namespace tritax
