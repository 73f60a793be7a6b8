#include "model/parts/library_sum.hpp"

#include <utility>

#include "model/cost/nodes_cost.hpp"
#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"

namespace tritax {

LibraryTile library_sum_tile(const PartialSums& problem, const Machine& machine) {
  return library_tile({problem.m, problem.n, depth_of(problem, 0), problem.dtype}, machine);
}

void launch_library_product(SumDraft& draft, int rank, const LibraryTile& library, std::int16_t target,
                            std::int16_t parts) {
  const auto m = static_cast<std::int32_t>(draft.problem.m);
  const auto n = static_cast<std::int32_t>(draft.problem.n);
  const std::vector<std::int32_t> kernels = add_library_gemm(draft.builder, draft.machine,
                                                             {rank,
                                                              draft.a,
                                                              draft.b,
                                                              depth_of(draft.problem, rank),
                                                              target,
                                                              {0, 0, m, n},
                                                              parts,
                                                              draft.problem.dtype,
                                                              library});
  if (draft.knobs.host_barriers) draft.builder.host(rank, HostOpKind::barrier);
  for (const std::int32_t kernel : kernels) draft.builder.launch(rank, kernel, 0);
}

LibraryReduce library_reduce_of(SumDraft& draft, std::string kernel, std::int16_t own, DType dtype,
                                std::vector<Rect> blocks) {
  ScheduleBuilder& builder = draft.builder;
  const Rect widest = blocks.front();
  LibraryReduce reduce;
  reduce.kernel = std::move(kernel);
  reduce.ranks = draft.ranks();
  reduce.everywhere = draft.everywhere;
  // Between nodes engines call the collective library.
  const bool one_node = !node_grid(draft.machine, draft.ranks()).several();
  if (draft.everywhere && one_node) reduce.custom = draft.knobs.custom;
  reduce.own = own;
  reduce.result = draft.c;
  reduce.slot_rows = widest.rows;
  if (draft.sends()) {
    reduce.slots = builder.buffer(
        {"slots", dtype, widest.rows * draft.ranks(), widest.cols, draft.tile.m, draft.tile.n});
  }
  reduce.widest_bytes = static_cast<double>(widest.rows) * widest.cols * bytes_of(dtype);
  reduce.blocks = std::move(blocks);
  if (reduce.everywhere) {
    add_all_reduce_flags(builder, draft.machine, reduce);
    return reduce;
  }
  const std::int32_t flags = library_channels(draft.machine) * draft.ranks();
  reduce.arrived = builder.flags("arrived", flags);
  if (draft.opens()) reduce.opened = builder.flags("opened", flags);
  return reduce;
}

SumDraft library_sum_draft(std::string_view pattern, const PartialSums& problem, const Machine& machine,
                           const SumKnobs& asked) {
  PartialSums array = problem;
  array.blocks = problem.m >= problem.n ? Blocks::rows : Blocks::columns;
  const LibraryTile library = library_sum_tile(problem, machine);
  auto knobs = library_knobs<SumKnobs>(library.tile, asked);
  knobs.custom = asked.custom;
  return {pattern, array, machine, knobs, true, product_dtype(problem.dtype)};
}

void add_library_sum(SumDraft& draft, const std::function<void(int rank)>& behind) {
  ScheduleBuilder& builder = draft.builder;
  const bool multiplies = !draft.alone();
  const LibraryTile library = multiplies ? library_sum_tile(draft.problem, draft.machine) : LibraryTile{};
  const std::int16_t parts = multiplies ? add_buffer_of_parts(builder, library, draft.problem.m,
                                                              static_cast<std::int32_t>(draft.problem.n))
                                        : std::int16_t{-1};
  LibraryReduce reduce;
  // On one rank, the library too copies a lone summand to the sum.
  const bool sums = draft.sends() || !multiplies;
  if (sums) {
    // Behind a GEMM, C is both summand and result.
    reduce = library_reduce_of(draft, "all_reduce", multiplies ? draft.c : draft.partial,
                               multiplies ? product_dtype(draft.problem.dtype) : draft.problem.dtype,
                               blocks_of(draft.problem));
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    if (multiplies) {
      launch_library_product(draft, rank, library, draft.c, parts);
    } else if (draft.knobs.host_barriers) {
      builder.host(rank, HostOpKind::barrier);
    }
    if (sums) {
      reduce.rank = rank;
      reduce.place = reduce.blocks[static_cast<std::size_t>(rank)];
      builder.host_work(rank, kCollectiveCall);
      builder.launch(rank, add_library_reduce(builder, draft.machine, reduce), 0);
    }
    if (behind) behind(rank);
    builder.host(rank, HostOpKind::device_synchronize);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
}

}  // namespace tritax
