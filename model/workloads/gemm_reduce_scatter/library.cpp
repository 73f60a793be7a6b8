// Library baseline: the vendor's GEMM, then the reduce-scatter of the collective library.
//
//   stream 0, GEMM:                         the vendor's kernel: partial = A_r·B_r
//   stream 0, COPY, if blocks are columns:  columns of `partial` -> contiguous blocks
//   stream 0, REDUCE-SCATTER:               model/parts/library_collectives.hpp
//
// Nothing waits for the host in between, because a framework puts all calls into streams. Products leave the
// GEMM in product_dtype(), in which they are added.
#include <vector>

#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/parts/library_sum.hpp"
#include "model/workloads/gemm_reduce_scatter/patterns.hpp"

namespace tritax {

namespace {

// Blocks for the collective: rows of one matrix, or blocks of columns, one below the other.
struct Contiguous {
  std::int16_t buffer = -1;
  std::vector<Rect> blocks;
};

Contiguous contiguous_blocks(SumDraft& draft) {
  Contiguous all;
  const auto m = static_cast<std::int32_t>(draft.problem.m);
  const Rect widest = block_of(draft.problem, 0);
  if (draft.problem.blocks == Blocks::columns) {
    all.buffer = draft.builder.buffer({"blocks", product_dtype(draft.problem.dtype), m * draft.ranks(),
                                       widest.cols, draft.tile.m, draft.tile.n});
  } else {
    all.buffer = draft.partial;
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    Rect block = block_of(draft.problem, rank);
    if (draft.problem.blocks == Blocks::columns) {
      block.row = rank * m;
      block.col = 0;
    }
    all.blocks.push_back(block);
  }
  return all;
}

void launch_reduce_scatter(SumDraft& draft, int rank, const Contiguous& contiguous, LibraryReduce& reduce) {
  ScheduleBuilder& builder = draft.builder;
  reduce.rank = rank;
  const Rect& block = contiguous.blocks[static_cast<std::size_t>(rank)];
  reduce.place = {0, 0, block.rows, block.cols};
  builder.host_work(rank, kCollectiveCall);
  if (contiguous.buffer != draft.partial) {
    BlockCopy copy{rank, draft.partial, contiguous.buffer, {}, contiguous.blocks};
    for (int owner = 0; owner < draft.ranks(); ++owner) copy.blocks.push_back(block_of(draft.problem, owner));
    builder.launch(rank, add_block_copy(builder, draft.machine, copy), 0);
  }
  builder.launch(rank, add_library_reduce(builder, draft.machine, reduce), 0);
}

}  // namespace

Schedule build_reduce_scatter_library(const PartialSums& problem, const Machine& machine,
                                      const SumKnobs& asked) {
  const LibraryTile library = library_sum_tile(problem, machine);
  const DType dtype = product_dtype(problem.dtype);
  SumDraft draft("library", problem, machine, library_knobs<SumKnobs>(library.tile, asked), false, dtype);
  ScheduleBuilder& builder = draft.builder;
  const auto m = static_cast<std::int32_t>(problem.m);
  const auto n = static_cast<std::int32_t>(problem.n);
  const std::int16_t parts = add_buffer_of_parts(builder, library, problem.m, n);
  draft.partial = draft.c;
  LibraryReduce reduce;
  Contiguous contiguous;
  if (draft.sends()) {
    draft.partial = builder.buffer({"partial", dtype, m, n, draft.tile.m, draft.tile.n});
    contiguous = contiguous_blocks(draft);
    reduce = library_reduce_of(draft, "reduce_scatter", contiguous.buffer, dtype, contiguous.blocks);
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    launch_library_product(draft, rank, library, draft.partial, parts);
    if (draft.sends()) launch_reduce_scatter(draft, rank, contiguous, reduce);
    builder.host(rank, HostOpKind::device_synchronize);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax
