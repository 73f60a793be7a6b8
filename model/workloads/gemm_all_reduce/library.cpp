// Library baseline: model/parts/library_sum.hpp.
#include "model/parts/library_sum.hpp"
#include "model/workloads/gemm_all_reduce/patterns.hpp"

namespace tritax {

Schedule build_all_reduce_library(const PartialSums& problem, const Machine& machine, const SumKnobs& asked) {
  const LibraryTile library = all_reduce_library_tile(problem, machine);
  const DType dtype = dtype_of_sums(problem.dtype);
  SumDraft draft("library", as_array(problem), machine, knobs_of(library, asked), true, dtype);
  ScheduleBuilder& builder = draft.builder;
  const auto m = static_cast<std::int32_t>(problem.m);
  const auto n = static_cast<std::int32_t>(problem.n);
  const std::int16_t parts = add_buffer_of_parts(builder, library, problem.m, n);
  LibraryReduce reduce;
  if (draft.sends()) {
    const Rect widest = block_of(draft.problem, 0);
    reduce.kernel = "all_reduce";
    reduce.ranks = draft.ranks();
    reduce.everywhere = true;
    reduce.own = draft.c;
    reduce.result = draft.c;
    reduce.slot_rows = widest.rows;
    reduce.slots = builder.buffer(
        {"slots", dtype, widest.rows * draft.ranks(), widest.cols, draft.tile.m, draft.tile.n});
    reduce.widest_bytes = static_cast<double>(widest.rows) * widest.cols * bytes_of(dtype);
    add_all_reduce_flags(builder, machine, reduce);
    for (int rank = 0; rank < draft.ranks(); ++rank) reduce.blocks.push_back(block_of(draft.problem, rank));
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    const std::vector<std::int32_t> gemm = add_library_gemm(builder, machine,
                                                            {rank,
                                                             draft.a,
                                                             draft.b,
                                                             depth_of(problem, rank),
                                                             draft.c,
                                                             {0, 0, m, n},
                                                             parts,
                                                             problem.dtype,
                                                             library});
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    for (const std::int32_t kernel : gemm) builder.launch(rank, kernel, 0);
    if (draft.sends()) {
      reduce.rank = rank;
      reduce.place = reduce.blocks[static_cast<std::size_t>(rank)];
      builder.host_work(rank, kCollectiveCall, machine.library.collective_call_ns);
      builder.launch(rank, add_library_reduce(builder, machine, reduce), 0);
    }
    builder.host(rank, HostOpKind::device_synchronize);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
  SumDraft draft = library_sum_draft("library", problem, machine, asked);
  add_library_sum(draft);
  return draft.builder.finish();
}

}  // namespace tritax
