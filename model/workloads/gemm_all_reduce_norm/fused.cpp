#include "model/workloads/gemm_all_reduce_norm/fused.hpp"

#include <algorithm>
#include <vector>

namespace tritax {

namespace {

struct FusedNorm {
  NormRows norm;
  std::int16_t slots = -1;    // push: all of C per source
  std::int16_t arrived = -1;  // one per row of tiles
  std::int32_t workgroups = 1;
  std::vector<SumTile> tiles;
};

FusedNorm plan_of(SumDraft& draft) {
  const auto m = static_cast<std::int32_t>(draft.problem.m);
  const auto n = static_cast<std::int32_t>(draft.problem.n);
  FusedNorm plan;
  plan.norm = add_norm(draft);
  plan.tiles = whole_tiles(draft);
  plan.workgroups = all_cus(draft.machine.gpu, draft.knobs.gemm_cus);
  // Rows go through memory without peers too, because a tile is not a whole row.
  draft.partial = draft.builder.buffer({"partial", draft.wire_dtype(), m, n, draft.tile.m, draft.tile.n});
  plan.arrived = draft.builder.flags("arrived", ceil_div(m, draft.tile.m));
  if (draft.sends() && draft.knobs.transport == Transport::push) {
    plan.slots =
        draft.builder.buffer({"slots", draft.wire_dtype(), m * draft.ranks(), n, draft.tile.m, draft.tile.n});
  }
  add_opened(draft);
  return plan;
}

void send_tile(SumDraft& draft, const FusedNorm& plan, int rank, const SumTile& tile, bool first,
               std::int32_t p) {
  ScheduleBuilder& builder = draft.builder;
  const std::vector<int> peers = draft.peers_of(rank, p);
  multiply(draft, rank, tile.rect);
  for (const int peer : peers) {
    if (first) await_opened(draft, peer);
  }
  builder.store(draft.partial, tile.rect, rank);
  Rect slot = tile.rect;
  slot.row += rank * static_cast<std::int32_t>(draft.problem.m);
  for (const int peer : peers) {
    if (plan.slots >= 0) builder.store(plan.slots, slot, peer);
  }
  const std::int32_t number = tile.rect.row / draft.tile.m;
  for (const int peer : peers) builder.signal(plan.arrived, number, 1, peer, Scope::system, draft.knobs.lock);
  builder.signal(plan.arrived, number, 1, rank, Scope::gpu, draft.knobs.lock);
}

void add_row(SumDraft& draft, const FusedNorm& plan, int rank, std::int32_t row, std::int32_t p) {
  const auto n = static_cast<std::int32_t>(draft.problem.n);
  const Scope scope = draft.sends() ? Scope::system : Scope::gpu;
  draft.builder.wait(plan.arrived, row / draft.tile.m, ceil_div(n, draft.tile.n) * draft.ranks(), scope,
                     draft.knobs.lock);
  add_up_norm_row(draft, plan.norm, plan.slots, rank, row, draft.peers_of(rank, p));
  finish_norm_row(draft, plan.norm, rank, row);
}

std::int32_t fused_norm_kernel(SumDraft& draft, const FusedNorm& plan, int rank) {
  Kernel kernel;
  kernel.name = "gemm_all_reduce_rms_norm";
  kernel.rank = rank;
  kernel.resources = with_copy_role(draft.machine.gpu, draft.gemm_resources, draft.problem.n);
  kernel.tile = draft.tile;
  kernel.placement = Placement::persistent;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  for (std::int32_t p = 0; p < plan.workgroups; ++p) {
    draft.builder.workgroup(id);
    tell_opened(draft, rank, p == 0);
    bool first = true;
    for (auto i = static_cast<std::size_t>(draft.first_item(p, plan.workgroups)); i < plan.tiles.size();
         i += static_cast<std::size_t>(plan.workgroups)) {
      send_tile(draft, plan, rank, plan.tiles[i], first, p);
      first = false;
    }
    for (std::int32_t row = p; row < draft.problem.m; row += plan.workgroups)
      add_row(draft, plan, rank, row, p);
  }
  return id;
}

}  // namespace

void add_fused_norm(SumDraft& draft) {
  const FusedNorm plan = plan_of(draft);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::int32_t kernel = fused_norm_kernel(draft, plan, rank);
    host_program(draft.builder, rank, draft.knobs, {{kernel, 0}});
  }
}

}  // namespace tritax
