// Patterns where products overlap with moves of tokens or of results. C workgroups move, the others multiply;
// r own rank.
//
//   MOVE      for experts, those of rank r+1 first, for rows p, p+C, … of each: copy -> where its rows are;
//             arrived[expert] += 1 there
//   UP        for tiles: wait until all rows of the expert have come; multiply; store
//   DOWN      for tiles: (fused: wait until the rows of H are complete;) multiply; store
//   SEND      behind DOWN of a tile: copy its rows -> back at their sources
//   SUM       returned[r] += 1 on all ranks; wait for all workgroups of all; for own tokens: add up; store
//
//   fused-dispatch:  one kernel of MOVE beside UP; DOWN; RETURN as in direct, pushed or pulled
//   fused-combine:   DISPATCH as in direct, pushed or pulled; UP; one kernel of DOWN and SEND, then SUM
//   fused:           one kernel of MOVE beside UP, then DOWN and SEND, then SUM
#include <algorithm>
#include <utility>

#include "model/workloads/moe/patterns.hpp"

namespace tritax {

namespace {

// Blocks of one mover, with one list per expert.
using Parts = std::vector<std::vector<const Routed*>>;

struct Moves {
  std::vector<std::vector<Parts>> of;  // (source, mover): parts, in the order of sending
  std::vector<std::int32_t> signals;   // signals that announce an expert's rows
};

// Rows of every expert in turn, starting with the experts of the next rank.
Moves moves_of(const MoeDraft& draft, std::int32_t movers) {
  const Routes& routes = draft.routes;
  Moves moves;
  moves.signals.assign(static_cast<std::size_t>(routes.targets()), 0);
  for (int source = 0; source < draft.ranks(); ++source) {
    std::vector<std::vector<const Routed*>> by_target(static_cast<std::size_t>(routes.targets()));
    for (const Routed& routed : routes.of(source))
      by_target[static_cast<std::size_t>(routed.target)].push_back(&routed);
    std::vector<std::vector<std::vector<const Routed*>>> of_rank;
    for (const int rank : ranks_from(PeerOrder::rotated, draft.ranks(), source, 0)) {
      of_rank.emplace_back();
      const Share own = routes.targets_of(rank);
      for (std::int64_t target = own.begin; target < own.end; ++target) {
        of_rank.back().push_back(by_target[static_cast<std::size_t>(target)]);
      }
    }
    moves.of.emplace_back(static_cast<std::size_t>(movers));
    std::int32_t item = 0;
    for (const std::vector<const Routed*>& rows : merged(of_rank, true)) {
      std::vector<std::vector<const Routed*>> shares(static_cast<std::size_t>(movers));
      for (const Routed* routed : rows) shares[static_cast<std::size_t>(item++ % movers)].push_back(routed);
      for (std::size_t p = 0; p < shares.size(); ++p) {
        if (shares[p].empty()) continue;
        ++moves.signals[static_cast<std::size_t>(shares[p].front()->target)];
        moves.of.back()[p].push_back(std::move(shares[p]));
      }
    }
  }
  return moves;
}

void move_tokens(MoeDraft& draft, const Moves& moves, int source, std::int32_t p, std::int16_t arrived) {
  const Routes& routes = draft.routes;
  for (const auto& part : moves.of[static_cast<std::size_t>(source)][static_cast<std::size_t>(p)]) {
    const int target = part.front()->target;
    const int owner = routes.owner(target);
    for (const Routed* routed : part) {
      draft.builder.copy(draft.buffers.at_owner, {routed->at_owner, 0, routed->rows, draft.buffers.cols},
                         owner, draft.buffers.tokens, routed->token, 0, source);
    }
    const auto local = static_cast<std::int32_t>(target - routes.targets_of(owner).begin);
    draft.builder.signal(arrived, local, 1, owner, Scope::system, draft.knobs.lock);
  }
}

struct FusedFlags {
  std::int16_t arrived = -1;   // (own expert), counted by movers
  std::int16_t complete = -1;  // (group of tiles), counted by tiles of UP
  std::int16_t returned = -1;  // (source), counted by workgroups that multiply
};

std::int16_t add_arrived(MoeDraft& draft) {
  return draft.builder.flags("arrived", static_cast<std::int32_t>(draft.routes.targets_of(0).size()));
}

void multiply_up(MoeDraft& draft, const Moves& moves, int rank, std::int32_t p, std::int32_t count,
                 const FusedFlags& flags) {
  const std::vector<ExpertTile> tiles = draft.tiles(rank, ExpertProduct::up);
  for (auto i = static_cast<std::size_t>(p); i < tiles.size(); i += static_cast<std::size_t>(count)) {
    const ExpertTile& tile = tiles[i];
    const auto local = static_cast<std::int32_t>(tile.expert - draft.routes.targets_of(rank).begin);
    draft.builder.wait(flags.arrived, local, moves.signals[static_cast<std::size_t>(tile.expert)],
                       Scope::system, draft.knobs.lock);
    draft.multiply(rank, ExpertProduct::up, tile);
    if (flags.complete >= 0) {
      draft.builder.signal(flags.complete, tile.group, 1, rank, Scope::gpu, draft.knobs.lock);
    }
  }
}

void multiply_down_and_sum(MoeDraft& draft, int rank, std::int32_t p, std::int32_t count,
                           const FusedFlags& flags) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<ExpertTile> tiles = draft.tiles(rank, ExpertProduct::down);
  for (auto i = static_cast<std::size_t>(p); i < tiles.size(); i += static_cast<std::size_t>(count)) {
    if (flags.complete >= 0) {
      builder.wait(flags.complete, tiles[i].group, draft.tiles_of_group(), Scope::gpu, draft.knobs.lock);
    }
    draft.multiply(rank, ExpertProduct::down, tiles[i]);
    builder.barrier();
    draft.send_back(rank, tiles[i]);
  }
  builder.barrier();
  for (int peer = 0; peer < draft.ranks(); ++peer) {
    builder.signal(flags.returned, rank, 1, peer, Scope::system, draft.knobs.lock);
  }
  for (int peer = 0; peer < draft.ranks(); ++peer) {
    builder.wait(flags.returned, peer, count, Scope::system, draft.knobs.lock);
  }
  // The piece that fits the accumulator of the products.
  sum_results(builder, draft.routes, draft.buffers, rank, false, p, count,
              {draft.knobs.tile_m, draft.knobs.tile_n});
}

}  // namespace

Schedule build_moe_fused_dispatch(const Moe& problem, const Machine& machine, const MoeKnobs& knobs) {
  MoeDraft draft("fused-dispatch", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t movers = knobs.comm_cus;
  const Moves moves = moves_of(draft, movers);
  FusedFlags fused;
  fused.arrived = add_arrived(draft);
  MoeFlags flags;
  return_flags(draft, movers, flags);
  const std::int32_t count = draft.multiplying(movers);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    begin_run(draft, rank);
    Kernel kernel = draft.product_kernel(rank, "dispatch_and_up");
    kernel.placement = Placement::persistent;
    const std::int32_t id = builder.kernel(std::move(kernel));
    for (std::int32_t p = 0; p < movers; ++p) {
      builder.workgroup(id);
      move_tokens(draft, moves, rank, p, fused.arrived);
    }
    for (std::int32_t p = 0; p < count; ++p) {
      builder.workgroup(id);
      multiply_up(draft, moves, rank, p, count, fused);
    }
    builder.launch(rank, id);
    draft.launch_product(rank, ExpertProduct::down);
    launch_return(draft, rank, movers, flags);
    end_run(draft, rank);
  }
  return builder.finish();
}

Schedule build_moe_fused_combine(const Moe& problem, const Machine& machine, const MoeKnobs& knobs) {
  MoeDraft draft("fused-combine", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  const MoeFlags flags = dispatch_flags(draft, knobs.comm_cus);
  draft.add_back();
  FusedFlags fused;
  fused.returned = builder.flags("returned", draft.ranks());
  const std::int32_t count = draft.multiplying(0);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    begin_run(draft, rank);
    launch_dispatch(draft, rank, knobs.comm_cus, flags);
    draft.launch_product(rank, ExpertProduct::up);
    Kernel kernel = draft.product_kernel(rank, "down_and_combine");
    kernel.placement = Placement::persistent;
    const std::int32_t id = builder.kernel(std::move(kernel));
    for (std::int32_t p = 0; p < count; ++p) {
      builder.workgroup(id);
      multiply_down_and_sum(draft, rank, p, count, fused);
    }
    builder.launch(rank, id);
    end_run(draft, rank);
  }
  return builder.finish();
}

Schedule build_moe_fused(const Moe& problem, const Machine& machine, const MoeKnobs& knobs) {
  MoeDraft draft("fused", problem, machine, knobs);
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t movers = knobs.comm_cus;
  const Moves moves = moves_of(draft, movers);
  draft.add_back();
  const FusedFlags flags{add_arrived(draft), builder.flags("complete", draft.groups()),
                         builder.flags("returned", draft.ranks())};
  const std::int32_t count = draft.multiplying(movers);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel = draft.product_kernel(rank, "experts");
    kernel.placement = Placement::persistent;
    const std::int32_t id = builder.kernel(std::move(kernel));
    for (std::int32_t p = 0; p < movers; ++p) {
      builder.workgroup(id);
      move_tokens(draft, moves, rank, p, flags.arrived);
    }
    for (std::int32_t p = 0; p < count; ++p) {
      builder.workgroup(id);
      multiply_up(draft, moves, rank, p, count, flags);
      multiply_down_and_sum(draft, rank, p, count, flags);
    }
    host_program(builder, rank, knobs, {{id, 0}});
  }
  return builder.finish();
}

}  // namespace tritax
