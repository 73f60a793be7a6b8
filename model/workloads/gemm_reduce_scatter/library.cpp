// Library baseline: the vendor's GEMM, then the reduce-scatter of the collective library.
//
//   stream 0, GEMM:                         the vendor's kernel: partial = A_r·B_r
//   stream 0, COPY, if blocks are columns:  columns of `partial` -> contiguous blocks
//   stream 0, REDUCE-SCATTER:               model/parts/library_collectives.hpp
//
// Nothing waits for the host in between: a framework puts all of it into streams. Products of fp8 leave the
// GEMM in bf16, in which they are added: libraries multiply fp8 into bf16.
#include <vector>

#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/workloads/gemm_reduce_scatter/patterns.hpp"

namespace tritax {

namespace {

DType dtype_of_sums(DType dtype) { return dtype == DType::fp8 ? DType::bf16 : dtype; }

SumKnobs knobs_of(const LibraryTile& library, const SumKnobs& asked) {
  SumKnobs knobs;
  knobs.tile_m = library.tile.m;
  knobs.tile_n = library.tile.n;
  knobs.tile_k = library.tile.k;
  knobs.waves = library.tile.waves;
  knobs.pipeline = library.tile.pipeline;
  knobs.host_barriers = asked.host_barriers;
  return knobs;
}

// Blocks as the collective takes them: rows of one matrix, or, of columns, one below the other.
struct Contiguous {
  std::int16_t buffer = -1;
  std::vector<Rect> blocks;
};

Contiguous contiguous_blocks(SumDraft& draft) {
  Contiguous all;
  const auto m = static_cast<std::int32_t>(draft.problem.m);
  const Rect widest = block_of(draft.problem, 0);
  if (draft.problem.blocks == Blocks::columns) {
    all.buffer = draft.builder.buffer({"blocks", dtype_of_sums(draft.problem.dtype), m * draft.ranks(),
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

}  // namespace

LibraryTile reduce_scatter_library_tile(const PartialSums& problem, const Machine& machine) {
  return library_tile({problem.m, problem.n, depth_of(problem, 0), problem.dtype}, machine);
}

Schedule build_reduce_scatter_library(const PartialSums& problem, const Machine& machine,
                                      const SumKnobs& asked) {
  const LibraryTile library = reduce_scatter_library_tile(problem, machine);
  const DType dtype = dtype_of_sums(problem.dtype);
  SumDraft draft("library", problem, machine, knobs_of(library, asked), false, dtype);
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
    const Rect& widest = contiguous.blocks.front();
    reduce.kernel = "reduce_scatter";
    reduce.ranks = draft.ranks();
    reduce.own = contiguous.buffer;
    reduce.result = draft.c;
    reduce.blocks = contiguous.blocks;
    reduce.slot_rows = widest.rows;
    reduce.slots = builder.buffer(
        {"slots", dtype, widest.rows * draft.ranks(), widest.cols, draft.tile.m, draft.tile.n});
    reduce.widest_bytes = static_cast<double>(widest.rows) * widest.cols * bytes_of(dtype);
    const std::int32_t flags = library_channels(machine) * draft.ranks();
    reduce.arrived = builder.flags("arrived", flags);
    if (draft.opens()) reduce.opened = builder.flags("opened", flags);
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::vector<std::int32_t> gemm = add_library_gemm(builder, machine,
                                                            {rank,
                                                             draft.a,
                                                             draft.b,
                                                             depth_of(problem, rank),
                                                             draft.partial,
                                                             {0, 0, m, n},
                                                             parts,
                                                             problem.dtype,
                                                             library});
    std::vector<std::int32_t> collective;
    if (draft.sends()) {
      reduce.rank = rank;
      const Rect& block = contiguous.blocks[static_cast<std::size_t>(rank)];
      reduce.place = {0, 0, block.rows, block.cols};
      if (contiguous.buffer != draft.partial) {
        BlockCopy copy{rank, draft.partial, contiguous.buffer, {}, contiguous.blocks};
        for (int owner = 0; owner < draft.ranks(); ++owner) copy.blocks.push_back(block_of(problem, owner));
        collective.push_back(add_block_copy(builder, machine, copy));
      }
      collective.push_back(add_library_reduce(builder, machine, reduce));
    }
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    for (const std::int32_t kernel : gemm) builder.launch(rank, kernel, 0);
    if (draft.sends()) builder.host_work(rank, kCollectiveCall, machine.library.collective_call_ns);
    for (const std::int32_t kernel : collective) builder.launch(rank, kernel, 0);
    builder.host(rank, HostOpKind::device_synchronize);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax
