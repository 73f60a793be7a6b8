#include "model/parts/library_sum.hpp"

#include <vector>

#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"

namespace tritax {

namespace {

SumKnobs knobs_of_library_sum(const LibraryTile& library, const SumKnobs& asked) {
  SumKnobs knobs;
  knobs.tile_m = library.tile.m;
  knobs.tile_n = library.tile.n;
  knobs.tile_k = library.tile.k;
  knobs.waves = library.tile.waves;
  knobs.pipeline = library.tile.pipeline;
  knobs.host_barriers = asked.host_barriers;
  return knobs;
}

// Behind a GEMM its C is summand and result.
LibraryReduce plan_of_sum(SumDraft& draft, DType dtype) {
  ScheduleBuilder& builder = draft.builder;
  const Rect widest = block_of(draft.problem, 0);
  LibraryReduce reduce;
  reduce.kernel = "all_reduce";
  reduce.ranks = draft.ranks();
  reduce.everywhere = true;
  reduce.own = draft.alone() ? draft.partial : draft.c;
  reduce.result = draft.c;
  reduce.slot_rows = widest.rows;
  reduce.slots =
      builder.buffer({"slots", dtype, widest.rows * draft.ranks(), widest.cols, draft.tile.m, draft.tile.n});
  reduce.widest_bytes = static_cast<double>(widest.rows) * widest.cols * bytes_of(dtype);
  add_all_reduce_flags(builder, draft.machine, reduce);
  for (int rank = 0; rank < draft.ranks(); ++rank) reduce.blocks.push_back(block_of(draft.problem, rank));
  return reduce;
}

void launch_library_product(SumDraft& draft, int rank, const LibraryTile& library, std::int16_t parts) {
  const auto m = static_cast<std::int32_t>(draft.problem.m);
  const auto n = static_cast<std::int32_t>(draft.problem.n);
  const std::vector<std::int32_t> kernels = add_library_gemm(draft.builder, draft.machine,
                                                             {rank,
                                                              draft.a,
                                                              draft.b,
                                                              depth_of(draft.problem, rank),
                                                              draft.c,
                                                              {0, 0, m, n},
                                                              parts,
                                                              draft.problem.dtype,
                                                              library});
  if (draft.knobs.host_barriers) draft.builder.host(rank, HostOpKind::barrier);
  for (const std::int32_t kernel : kernels) draft.builder.launch(rank, kernel, 0);
}

}  // namespace

LibraryTile library_sum_tile(const PartialSums& problem, const Machine& machine) {
  return library_tile({problem.m, problem.n, depth_of(problem, 0), problem.dtype}, machine);
}

SumDraft library_sum_draft(std::string_view pattern, const PartialSums& problem, const Machine& machine,
                           const SumKnobs& asked) {
  PartialSums array = problem;
  array.blocks = problem.m >= problem.n ? Blocks::rows : Blocks::columns;
  return {pattern, array,
          machine, knobs_of_library_sum(library_sum_tile(problem, machine), asked),
          true,    library_sum_dtype(problem.dtype)};
}

void add_library_sum(SumDraft& draft, const std::function<void(int rank)>& behind) {
  ScheduleBuilder& builder = draft.builder;
  const bool multiplies = !draft.alone();
  const LibraryTile library = multiplies ? library_sum_tile(draft.problem, draft.machine) : LibraryTile{};
  const std::int16_t parts = multiplies ? add_buffer_of_parts(builder, library, draft.problem.m,
                                                              static_cast<std::int32_t>(draft.problem.n))
                                        : std::int16_t{-1};
  LibraryReduce reduce;
  // A summand alone is copied into the sum by the library too.
  const bool sums = draft.sends() || !multiplies;
  if (sums) {
    reduce = plan_of_sum(draft, multiplies ? library_sum_dtype(draft.problem.dtype) : draft.problem.dtype);
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    if (multiplies) {
      launch_library_product(draft, rank, library, parts);
    } else if (draft.knobs.host_barriers) {
      builder.host(rank, HostOpKind::barrier);
    }
    if (sums) {
      reduce.rank = rank;
      reduce.place = reduce.blocks[static_cast<std::size_t>(rank)];
      builder.host_work(rank, kCollectiveCall, draft.machine.library.collective_call_ns);
      builder.launch(rank, add_library_reduce(builder, draft.machine, reduce), 0);
    }
    if (behind) behind(rank);
    builder.host(rank, HostOpKind::device_synchronize);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
}

}  // namespace tritax
