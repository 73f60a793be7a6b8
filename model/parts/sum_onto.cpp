// Sums that lie in memory, onto which every rank adds its summands: by atomic additions, or in turns.
#include <algorithm>

#include "model/parts/sum_patterns.hpp"

namespace tritax {

namespace {

struct Sums {
  Onto onto = Onto::atomics;
  std::int16_t sum = -1;
  std::int16_t zeros = -1;
  std::int16_t zeroed = -1;  // flags (workgroup, rank)
  std::int16_t turn = -1;    // turns: flags (tile, rank that has the sum), one set by the holder before
};

// The tiles of workgroup `number`, and the ranks in the order of its way.
struct Round {
  int rank = 0;
  std::int32_t number = 0;
  std::vector<const SumTile*> tiles;
  std::vector<int> way;
};

void add_atomically(SumDraft& draft, const Round& round, const Sums& sums) {
  for (const SumTile* tile : round.tiles) {
    multiply(draft, round.rank, tile->rect);
    add_by_peer(draft.builder, draft.knobs.serves, [&] {
      for (const int to : round.way) draft.builder.atomic_add(sums.sum, tile->rect, to);
    });
  }
}

// By rank that has a sum: the ranks in the order of their turns at it, which is the place of the sum on their
// ways.
std::vector<std::vector<int>> turns_of(const SumDraft& draft, std::int32_t number) {
  const auto ranks = static_cast<std::size_t>(draft.ranks());
  std::vector<std::vector<int>> turns(ranks);
  for (std::size_t place = 0; place < ranks; ++place) {
    for (int rank = 0; rank < draft.ranks(); ++rank) {
      const int at = ranks_from(draft.knobs.peer_order, draft.ranks(), rank, number)[place];
      turns[static_cast<std::size_t>(at)].push_back(rank);
    }
  }
  return turns;
}

// A rank waits only for turns at an earlier place of a way, or at the same place for lower ranks: nobody
// waits in a circle.
void add_in_turn(SumDraft& draft, const Round& round, const Sums& sums) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<std::vector<int>> turns = turns_of(draft, round.number);
  for (const SumTile* tile : round.tiles) {
    for (const int to : round.way) {
      const std::vector<int>& order = turns[static_cast<std::size_t>(to)];
      const auto own = std::find(order.begin(), order.end(), round.rank);
      const std::int32_t index = tile->number * draft.ranks() + to;
      if (own != order.begin()) builder.wait(sums.turn, index, 1, Scope::system, draft.knobs.lock);
      multiply(draft, round.rank, tile->rect);
      builder.reduce(sums.sum, tile->rect, to);
      builder.store(sums.sum, tile->rect, to);
      if (own + 1 != order.end())
        builder.signal(sums.turn, index, 1, *(own + 1), Scope::system, draft.knobs.lock);
    }
  }
}

void add_workgroup(SumDraft& draft, int rank, const std::vector<SumTile>& tiles, const Sums& sums,
                   std::int32_t p, std::int32_t workgroups) {
  ScheduleBuilder& builder = draft.builder;
  Round round{rank, p, {}, ranks_from(draft.knobs.peer_order, draft.ranks(), rank, p)};
  for (auto i = static_cast<std::size_t>(draft.first_item(p, workgroups)); i < tiles.size();
       i += static_cast<std::size_t>(workgroups))
    round.tiles.push_back(&tiles[i]);
  if (!draft.sends()) {
    for (const SumTile* tile : round.tiles) {
      multiply(draft, rank, tile->rect);
      builder.store(sums.sum, tile->rect, rank);
    }
    return;
  }
  for (const SumTile* tile : round.tiles) {
    builder.load(sums.zeros, {0, 0, tile->rect.rows, tile->rect.cols}, rank);
    builder.store(sums.sum, tile->rect, rank);
  }
  exchange_arrivals(builder, draft.peers_of(rank, p), draft.ranks(), rank, p, sums.zeroed, draft.knobs.lock,
                    draft.knobs.serves);
  if (sums.onto == Onto::atomics) add_atomically(draft, round, sums);
  if (sums.onto == Onto::turns) add_in_turn(draft, round, sums);
  exchange_done(draft, rank, p);
}

std::int32_t rounding_kernel(SumDraft& draft, int rank, const std::vector<SumTile>& tiles, std::int16_t sum) {
  Kernel kernel;
  kernel.name = "round";
  kernel.rank = rank;
  kernel.resources = tile_copy_resources(draft.machine.gpu, copy_resources().threads, kMostOfReducer);
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const auto rows = static_cast<std::int32_t>(kMostOfReducer / draft.tile.n);
  for (const SumTile& tile : tiles) {
    const Rect& rect = tile.rect;
    for (std::int32_t row = 0; row < rect.rows; row += rows) {
      draft.builder.workgroup(id);
      const Rect piece{rect.row + row, rect.col, std::min(rows, rect.rows - row), rect.cols};
      draft.builder.load(sum, piece, rank);
      draft.builder.store(draft.c, piece, rank);
    }
  }
  return id;
}

Sums add_sums(SumDraft& draft, Onto onto, DType dtype, std::int32_t workgroups, std::size_t tiles) {
  ScheduleBuilder& builder = draft.builder;
  Sums sums;
  sums.onto = onto;
  sums.sum = draft.c;
  if (!draft.sends()) return sums;
  if (dtype != draft.problem.dtype) {
    sums.sum = builder.buffer({"sum", dtype, static_cast<std::int32_t>(draft.problem.m),
                               static_cast<std::int32_t>(draft.problem.n), draft.tile.m, draft.tile.n});
  }
  sums.zeros = builder.buffer({"zeros", dtype, draft.tile.m, draft.tile.n, draft.tile.m, draft.tile.n});
  builder.input(builder.whole(sums.zeros), InputValues::zero);
  sums.zeroed = builder.flags("zeroed", workgroups * draft.ranks());
  if (onto == Onto::turns)
    sums.turn = builder.flags("turn", static_cast<std::int32_t>(tiles) * draft.ranks());
  return sums;
}

}  // namespace

void add_onto_sums(SumDraft& draft, Onto onto) {
  const std::vector<SumTile> tiles = whole_tiles(draft);
  const std::int32_t workgroups = all_cus(draft.machine.gpu, draft.knobs.gemm_cus);
  const DType dtype = onto == Onto::atomics ? sum_dtype(draft.problem.dtype) : draft.problem.dtype;
  const Sums sums = add_sums(draft, onto, dtype, workgroups, tiles.size());
  add_done(draft, workgroups);
  const char* name = onto == Onto::turns ? "in_turn" : draft.alone() ? "atomics" : "gemm_atomics";
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = name;
    kernel.rank = rank;
    kernel.resources = draft.gemm_resources;
    kernel.tile = draft.kernel_tile();
    kernel.placement = Placement::persistent;
    const std::int32_t id = draft.builder.kernel(std::move(kernel));
    for (std::int32_t p = 0; p < workgroups; ++p) {
      draft.builder.workgroup(id);
      add_workgroup(draft, rank, tiles, sums, p, workgroups);
    }
    Graph kernels{{id, 0}};
    if (sums.sum != draft.c) kernels.push_back({rounding_kernel(draft, rank, tiles, sums.sum), 0});
    host_program(draft.builder, rank, draft.knobs, kernels);
  }
}

}  // namespace tritax
