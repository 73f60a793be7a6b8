// Staged fetchers: one kernel, dispatched in order. In every stage a few workgroups fetch blocks, and one
// workgroup per tile waits for them (ROCm/iris iris/ops/all_gather_matmul_hbm_buffer.py).
//
//   grid:   fetch stage 0 | tiles of stage 0 | fetch stage 1 | tiles of stage 1 | …
//   fetch:  for blocks of the stage f, f+F, …: copy the block from its owner; signal ready[block] (gpu scope)
//   tile:   for blocks, own first: wait ready[block]; matmul;  store C(t)
//
// A stage is a part of the rows of C tiles. Progress relies on the order of dispatch: the fetching workgroups
// of a stage come before its waiting workgroups.
#include <algorithm>

#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

// Rows [first, first + count) of the walk.
struct Stage {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

std::vector<Stage> stages_of(const GatherDraft& draft) {
  const std::int32_t rows = draft.grid().rows;
  const std::int32_t height = ceil_div(rows, std::min(rows, draft.knobs.stages));
  std::vector<Stage> stages;
  for (std::int32_t row = 0; row < rows; row += height) stages.push_back({row, std::min(height, rows - row)});
  return stages;
}

void add_fetchers(GatherDraft& draft, int rank, std::int32_t kernel, const Stage& stage,
                  std::int32_t fetchers, std::int16_t ready) {
  const auto blocks = blocks_to_fetch(draft, rank, stage.first, stage.count);
  for (std::int32_t f = 0; f < fetchers; ++f) {
    if (static_cast<std::size_t>(f) >= blocks.size()) return;
    draft.builder.workgroup(kernel);
    for (auto i = static_cast<std::size_t>(f); i < blocks.size(); i += static_cast<std::size_t>(fetchers)) {
      fetch_block(draft, rank, *blocks[i]);
      draft.builder.signal(ready, blocks[i]->flag, providers(*blocks[i], rank), rank, Scope::gpu,
                           draft.knobs.lock);
    }
  }
}

// Adds the tiles of the stage, group by group of its rows.
void add_tiles(GatherDraft& draft, int rank, std::int32_t kernel, const Stage& stage, std::int16_t ready) {
  const TileGrid grid{stage.count, draft.grid().cols};
  for (std::int32_t t = 0; t < grid.count(); ++t) {
    draft.builder.workgroup(kernel);
    const TileIndex index = grouped_tile(t, grid, draft.knobs.group_m);
    compute_rect(draft, rank, tile_row(draft, rank, stage.first + index.row), index.col, t, ready,
                 Scope::gpu);
  }
}

}  // namespace

Resources staged_resources(const Machine& machine, DType dtype, const GatherKnobs& knobs) {
  const Resources gemm = matmul_resources(machine.gpu, machine.interpreter, dtype, matmul_tile(knobs));
  return with_copy_role(machine.gpu, gemm, elements_of_block(knobs));
}

Schedule build_staged_fetchers(const AllGatherGemm& problem, const Machine& machine,
                               const GatherKnobs& knobs) {
  GatherDraft draft("staged-fetchers", problem, machine, knobs);
  expect_product(draft, draft.a, true);
  const bool fetches = draft.ranks() > 1;
  const std::int16_t ready = fetches ? draft.builder.flags("ready", draft.flags) : std::int16_t{-1};
  const std::int32_t fetchers =
      knobs.comm_cus > 0 ? knobs.comm_cus : default_comm_cus(machine.gpu.cu_count());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = "staged_gemm";
    kernel.rank = rank;
    kernel.resources = staged_resources(machine, problem.dtype, knobs);
    kernel.tile = draft.tile;
    const std::int32_t id = draft.builder.kernel(std::move(kernel));
    bool first = true;
    for (const Stage& stage : stages_of(draft)) {
      const std::int32_t count = first && knobs.first_fetchers > 0 ? knobs.first_fetchers : fetchers;
      if (fetches) add_fetchers(draft, rank, id, stage, count, ready);
      add_tiles(draft, rank, id, stage, ready);
      first = false;
    }
    host_program(draft.builder, rank, knobs, {{id, 0}});
  }
  return draft.builder.finish();
}

}  // namespace tritax
