// Workgroups of a kernel of the workload's own that move heads between ranks, straight from one layout to the
// other.
#pragma once

#include "model/parts/grid_order.hpp"
#include "model/workloads/ulysses_attention/patterns.hpp"

namespace tritax {

struct HeadMovers {
  std::int32_t count = 0;  // workgroups
  TileIndex piece;         // rows and columns that they move at a time
};
// Throws UserError for more workgroups than compute units.
HeadMovers head_movers_of(const HeadsDraft& draft);

// Moves part p of the block of one rank's tokens and another rank's heads; both ranks' workgroups may do it.
void move_to_heads(HeadsDraft& draft, const HeadMovers& movers, std::int32_t p, int tokens_of, int heads_of);
void move_to_tokens(HeadsDraft& draft, const HeadMovers& movers, std::int32_t p, int tokens_of, int heads_of);

// The own rank, then all peers in the order of the knob.
std::vector<int> own_first(const HeadsDraft& draft, int rank, std::int32_t p);

// A persistent kernel of movers, without its workgroups.
std::int32_t moving_kernel(HeadsDraft& draft, const HeadMovers& movers, int rank, std::string_view name);

// Number of attending workgroups of a persistent kernel that stores results straight to their owners: as many
// as fit beside `others`, and at most one per tile. Throws UserError if none fits.
std::size_t attending(const HeadsDraft& draft, const Kernel& kernel, int rank, std::int32_t others);

// The end of such a workgroup: it tells all peers that its results for them are stored. The first workgroup
// waits for all workgroups of all peers. `finished`: flags (source); -1: hosts say when all is over.
// `counts`: attending workgroups by rank.
void finish_attending(HeadsDraft& draft, int rank, bool first, std::int16_t finished,
                      const std::vector<std::size_t>& counts);

}  // namespace tritax
