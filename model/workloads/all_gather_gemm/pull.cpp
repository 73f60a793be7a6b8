// Pull: one kernel; every workgroup fetches the parts of A that its tile needs from their owners.
//
//   fetch = registers: the form of arXiv:2511.02168 (ROCm/iris
//   examples/14_all_gather_gemm/all_gather_gemm_pull.py; the same loop in iris/ops/all_gather_matmul.py)
//
//   G workgroups:  for t in p', p'+G, …:  for owners, self first: matmul, A straight from the owner's memory
//                                         store C(t)
//
//   fetch = copy: a workgroup copies to rows of its own, one block ahead of the product
//
//   G workgroups:  for t in p', p'+G, …:  for blocks, own first: copy the next block from its owner;
//                                         matmul this one
//                                         store C(t)
//
// There are no flags and no second kernel, but each of the ceil(N / tile_n) tiles of a row fetches the same
// parts again. With registers, a tile whose rows several ranks have is computed in parts, one per owner: a
// matmul has one A.
#include <algorithm>

#include "model/machine/topology.hpp"
#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

// One step of a tile: a product in place, or a product of fetched blocks.
struct Step {
  Rect rect;  // of A
  bool fetched = false;
  std::vector<Piece> pieces;  // pieces to fetch
};

std::vector<Step> steps_of(const GatherDraft& draft, int rank, std::int32_t row, std::int32_t workgroup) {
  std::vector<Step> steps;
  for (const Block* block : blocks_in_order(draft, rank, row, workgroup)) {
    const std::int32_t first = row * draft.tile.m;
    const auto m = static_cast<std::int32_t>(draft.problem.m);
    const Rect rect{first, block->k_begin, std::min(draft.tile.m, m - first), block->k_end - block->k_begin};
    const bool fetched = !is_own(*block, rank);
    if (!fetched && !steps.empty() && !steps.back().fetched &&
        steps.back().rect.col + steps.back().rect.cols == rect.col) {
      steps.back().rect.cols += rect.cols;
      continue;
    }
    steps.push_back({rect, fetched, fetched ? block->pieces : std::vector<Piece>{}});
  }
  return steps;
}

// Copies to the rows of the workgroup, in the same columns. Copies the rank's own pieces too, if several
// ranks have pieces of the block.
void fetch(GatherDraft& draft, int rank, const Step& step, std::int16_t fetched, std::int32_t first_row) {
  for (const Piece& piece : step.pieces) {
    const Rect to{first_row + piece.rect.row - step.rect.row, piece.rect.col, piece.rect.rows,
                  piece.rect.cols};
    draft.builder.copy(fetched, to, rank, draft.a, piece.rect.row, piece.rect.col, piece.owner);
  }
}

// The first step from `from` on that fetches; the number of steps if there is none.
std::size_t next_fetched(const std::vector<Step>& steps, std::size_t from) {
  while (from < steps.size() && !steps[from].fetched) ++from;
  return from;
}

void compute(GatherDraft& draft, int rank, std::int32_t t, std::int32_t workgroup, std::int16_t fetched) {
  const Rect c = draft.gemm_tile(rank, t);
  const std::int32_t rows = workgroup * draft.tile.m;
  const std::vector<Step> steps = steps_of(draft, rank, c.row / draft.tile.m, workgroup);
  std::size_t issued = 0;  // earlier steps are on their way
  const auto issue = [&](std::size_t step) {
    for (; issued <= step; ++issued) {
      if (steps[issued].fetched) fetch(draft, rank, steps[issued], fetched, rows);
    }
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (issued <= i) issue(i);
    const std::size_t next = next_fetched(steps, i + 1);
    if (next < steps.size()) {
      issue(next);  // waits for the copy before it
    } else if (steps[i].fetched) {
      draft.builder.barrier();  // the last copy is complete once all waves have met here
    }
    Rect rect = c;
    if (steps[i].fetched) rect.row = rows;
    draft.builder.matmul(steps[i].fetched ? fetched : draft.a, draft.b, rect, steps[i].rect.col,
                         steps[i].rect.col + steps[i].rect.cols);
  }
  draft.builder.store(draft.c, c, rank);
}

// All blocks of a row of tiles are cut into the same pieces of rows. Each piece is computed by itself, with
// one product per owner and range of K; adjacent blocks of one owner are one range.
void compute_in_registers(GatherDraft& draft, int rank, std::int32_t t, std::int32_t workgroup) {
  const Rect c = draft.gemm_tile(rank, t);
  const auto blocks = blocks_in_order(draft, rank, c.row / draft.tile.m, workgroup);
  for (std::size_t p = 0; p < blocks.front()->pieces.size(); ++p) {
    const Rect& rows = blocks.front()->pieces[p].rect;
    const Rect part{rows.row, c.col, rows.rows, c.cols};
    for (std::size_t i = 0; i < blocks.size();) {
      const std::int32_t begin = blocks[i]->k_begin;
      const int owner = blocks[i]->pieces[p].owner;
      std::int32_t end = blocks[i]->k_end;
      for (++i; i < blocks.size() && blocks[i]->k_begin == end && blocks[i]->pieces[p].owner == owner; ++i)
        end = blocks[i]->k_end;
      draft.builder.matmul_of(owner, draft.a, draft.b, part, begin, end);
    }
    draft.builder.store(draft.c, part, rank);
  }
}

}  // namespace

// Every tile fetches the peers' rows or columns of A, at most at the raw rates of links. Where products read
// them and an L2 keeps them, they may cross once for all tiles.
double least_pull_ns(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs) {
  if (problem.gpus == 1) return 0;
  const Topology topology = build_topology(machine, problem.gpus);
  const bool once = knobs.registers && machine.gpu.l2_keeps_peers;
  const std::int64_t columns = once ? 1 : (problem.n + knobs.tile_n - 1) / knobs.tile_n;
  std::vector<double> edge_ns(topology.edges.size(), 0.0);
  for (int owner = 1; owner < problem.gpus; ++owner) {
    const Rect slice = slice_of(problem, owner);
    const double bytes = static_cast<double>(columns) * slice.rows * slice.cols * bytes_of(problem.dtype);
    for (const int edge : topology.routes[static_cast<std::size_t>(owner)][0]) {
      const auto e = static_cast<std::size_t>(edge);
      edge_ns[e] += bytes / topology.edges[e].raw_gb_per_s;
    }
  }
  return *std::max_element(edge_ns.begin(), edge_ns.end());
}

Schedule build_pull(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& knobs) {
  GatherDraft draft("pull", problem, machine, knobs);
  expect_product(draft, draft.a, true);
  const std::int32_t tiles = draft.grid().count();
  const std::int32_t workgroups = std::min(all_cus(machine.gpu, knobs.gemm_cus), tiles);
  const auto k = static_cast<std::int32_t>(problem.k);
  const std::int16_t fetched =
      knobs.registers ? std::int16_t{-1}
                      : draft.builder.buffer({"fetched", problem.dtype, workgroups * draft.tile.m, k,
                                              draft.tile.m, draft.tile.k});
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Kernel kernel;
    kernel.name = "pull_gemm";
    kernel.rank = rank;
    kernel.resources = draft.gemm_resources;
    if (!knobs.registers)
      kernel.resources = with_copy_role(machine.gpu, kernel.resources, elements_of_block(draft.knobs));
    kernel.tile = draft.tile;
    kernel.placement = Placement::persistent;
    const std::int32_t id = draft.builder.kernel(std::move(kernel));
    for (std::int32_t p = 0; p < workgroups; ++p) {
      draft.builder.workgroup(id);
      for (std::int32_t t = draft.first_item(p, workgroups); t < tiles; t += workgroups) {
        if (knobs.registers) {
          compute_in_registers(draft, rank, t, p);
        } else {
          compute(draft, rank, t, p, fetched);
        }
      }
    }
    host_program(draft.builder, rank, knobs, {{id, 0}});
  }
  return draft.builder.finish();
}

}  // namespace tritax
