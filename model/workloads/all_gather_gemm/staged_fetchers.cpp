// Staged fetchers: one kernel, dispatched in order. In every stage a few workgroups fetch blocks, and one
// workgroup per tile waits for them (ROCm/iris iris/ops/all_gather_matmul_hbm_buffer.py).
//
//   grid:   fetch stage 0 | tiles of stage 0 | fetch stage 1 | tiles of stage 1 | …
//   fetch:  for blocks of the stage f, f+F, …: copy the block from its owner; signal ready[block] (gpu scope)
//   tile:   for blocks, own first: wait ready[block]; matmul;  store C(t)
//
// With transport = push the workgroups that fetch send the own part of A instead (ryanswann-amd/iris
// @c9da6487 iris/ops/all_gather_matmul_col_parallel.py):
//
//   send:   for own pieces of the stage f, f+F, …: copy the piece to all peers at the same time;
//           for peers: ready[block] += 1 there (system scope)
//
// A stage is a part of the rows of C tiles; where ranks send rows, a part of the rows of every rank. Progress
// relies on the order of dispatch: the fetching workgroups of a stage come before its waiting workgroups.
#include <algorithm>
#include <utility>

#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

// Rows of C tiles in the order in which a rank walks them, stage by stage.
using Stages = std::vector<std::vector<std::int32_t>>;

Stages stages_of_walk(const GatherDraft& draft, int rank) {
  const std::int32_t rows = draft.grid().rows;
  const std::int32_t height = ceil_div(rows, std::min(rows, draft.knobs.stages));
  Stages stages;
  for (std::int32_t w = 0; w < rows; ++w) {
    if (w % height == 0) stages.emplace_back();
    stages.back().push_back(tile_row(draft, rank, w));
  }
  return stages;
}

// Every stage has a part of the rows of every owner. Own rows come first, unless the order is fixed.
Stages stages_of_owners(const GatherDraft& draft, int rank) {
  std::vector<std::vector<std::int32_t>> by_owner(static_cast<std::size_t>(draft.ranks()));
  for (std::int32_t row = 0; row < draft.grid().rows; ++row) {
    const int owner = draft.blocks_of(row).front().pieces.front().owner;
    by_owner[static_cast<std::size_t>(owner)].push_back(row);
  }
  std::size_t longest = 0;
  for (const auto& rows : by_owner) longest = std::max(longest, rows.size());
  const auto most = static_cast<std::int32_t>(longest);
  const std::int32_t height = ceil_div(most, std::min(most, draft.knobs.stages));
  Stages stages(static_cast<std::size_t>(ceil_div(most, height)));
  for (int i = 0; i < draft.ranks(); ++i) {
    const int owner = draft.knobs.peer_order == PeerOrder::fixed ? i : (rank + i) % draft.ranks();
    const auto& rows = by_owner[static_cast<std::size_t>(owner)];
    for (std::size_t r = 0; r < rows.size(); ++r)
      stages[r / static_cast<std::size_t>(height)].push_back(rows[r]);
  }
  return stages;
}

Stages stages_of(const GatherDraft& draft, int rank) {
  const bool of_owners = draft.knobs.push && draft.problem.sharding == Sharding::rows;
  return of_owners ? stages_of_owners(draft, rank) : stages_of_walk(draft, rank);
}

void add_fetchers(GatherDraft& draft, int rank, std::int32_t kernel, std::int32_t first, std::int32_t count,
                  std::int32_t fetchers, std::int16_t ready) {
  const auto blocks = blocks_to_fetch(draft, rank, first, count);
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

// A range of K of all rows of the stage, then the next range.
void add_senders(GatherDraft& draft, int rank, std::int32_t kernel, const std::vector<std::int32_t>& rows,
                 std::int32_t senders, std::int16_t ready) {
  std::vector<std::pair<Rect, std::int32_t>> pieces;  // with the flag of the block
  for (std::size_t place = 0; place < draft.blocks_of(0).size(); ++place) {
    for (const std::int32_t row : rows) {
      const Block& block = draft.blocks_of(row)[place];
      for (const Piece& piece : block.pieces) {
        if (piece.owner == rank) pieces.emplace_back(piece.rect, block.flag);
      }
    }
  }
  for (std::int32_t f = 0; f < senders && static_cast<std::size_t>(f) < pieces.size(); ++f) {
    draft.builder.workgroup(kernel);
    const std::vector<int> peers = peers_of(draft.knobs.peer_order, draft.ranks(), rank, f);
    for (auto i = static_cast<std::size_t>(f); i < pieces.size(); i += static_cast<std::size_t>(senders)) {
      const auto& [rect, flag] = pieces[i];
      draft.builder.together([&, &rect = rect] {
        for (const int peer : peers)
          draft.builder.copy(draft.a, rect, peer, draft.a, rect.row, rect.col, rank);
      });
      for (const int peer : peers)
        draft.builder.signal(ready, flag, 1, peer, Scope::system, draft.knobs.lock);
    }
  }
}

// Adds the tiles of the stage, group by group of its rows.
void add_tiles(GatherDraft& draft, int rank, std::int32_t kernel, const std::vector<std::int32_t>& rows,
               std::int16_t ready) {
  const TileGrid grid{static_cast<std::int32_t>(rows.size()), draft.grid().cols};
  for (std::int32_t t = 0; t < grid.count(); ++t) {
    draft.builder.workgroup(kernel);
    const TileIndex index = grouped_tile(t, grid, draft.knobs.group_m);
    compute_rect(draft, rank, rows[static_cast<std::size_t>(index.row)], index.col, t, ready,
                 draft.knobs.push ? Scope::system : Scope::gpu);
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
    std::int32_t walked = 0;
    for (const std::vector<std::int32_t>& rows : stages_of(draft, rank)) {
      const bool first = walked == 0;
      const std::int32_t workgroups = first && knobs.first_fetchers > 0 ? knobs.first_fetchers : fetchers;
      const auto count = static_cast<std::int32_t>(rows.size());
      if (fetches && knobs.push) {
        add_senders(draft, rank, id, rows, workgroups, ready);
      } else if (fetches) {
        add_fetchers(draft, rank, id, walked, count, workgroups, ready);
      }
      add_tiles(draft, rank, id, rows, ready);
      walked += count;
    }
    host_program(draft.builder, rank, knobs, {{id, 0}});
  }
  return draft.builder.finish();
}

}  // namespace tritax
