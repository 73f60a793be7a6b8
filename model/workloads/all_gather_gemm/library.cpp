// Library baseline: all-gather of the collective library, then the vendor's GEMM.
//
//   stream 0, ALL-GATHER, one workgroup a channel:  for peers, then here: copy chunks of the own shard ->
//                                                   its slot; tell all peers, wait for all peers
//   stream 0, COPY, if A is sharded along K:        slots -> column slices of A
//   stream 0, GEMM:                                 the vendor's kernel on all of A
//
// One host synchronisation at the end, because a framework puts all calls into streams. Shards of rows are
// gathered in place. Shards along K need the copy, because a collective gathers contiguous blocks.
#include <vector>

#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/workloads/all_gather_gemm/patterns.hpp"

namespace tritax {

namespace {

// Place of a rank's shard: in A, or in a slot of `gathered`.
Rect slot_of(const AllGatherGemm& problem, int rank, bool in_place) {
  Rect slot = slice_of(problem, rank);
  if (in_place) return slot;
  slot.row = rank * static_cast<std::int32_t>(problem.m);
  slot.col = 0;
  return slot;
}

std::int32_t all_gather_kernel(GatherDraft& draft, int rank, std::int16_t shard, std::int16_t gathered,
                               std::int16_t arrived, const GatherNodes& nodes) {
  const bool in_place = gathered == draft.a;
  const Rect widest = slice_of(draft.problem, 0);
  const double bytes = static_cast<double>(widest.rows) * widest.cols * bytes_of(draft.problem.dtype);
  const PeerOrder order =
      nodes.passed >= 0 ? PeerOrder::rotated : PeerOrder::fixed;  // then all nodes have the same order
  const std::vector<int> peers = peers_of(order, draft.ranks(), rank, 0);
  return add_library_gather(draft.builder, draft.machine,
                            {"all_gather", rank, draft.ranks(), shard, gathered,
                             slot_of(draft.problem, rank, in_place), bytes, nodes},
                            [&](std::int32_t channel) {
                              exchange_arrivals(draft.builder, peers, draft.ranks(), rank, channel, arrived,
                                                LockProtocol::load_store);
                            });
}

std::int32_t copy_into_slices(GatherDraft& draft, int rank, std::int16_t gathered) {
  SliceCopy copy{rank, gathered, draft.a, {}, {}};
  for (int from = 0; from < draft.ranks(); ++from) {
    copy.slots.push_back(slot_of(draft.problem, from, false));
    copy.columns.push_back(slice_of(draft.problem, from).col);
  }
  return add_slice_copy(draft.builder, draft.machine, copy);
}

}  // namespace

LibraryTile tile_of_library(const AllGatherGemm& problem, const Machine& machine) {
  return library_tile({problem.m, problem.n, problem.k, problem.dtype}, machine);
}

Schedule build_library(const AllGatherGemm& problem, const Machine& machine, const GatherKnobs& asked) {
  const LibraryTile library = tile_of_library(problem, machine);
  GatherDraft draft("library", problem, machine, library_knobs<GatherKnobs>(library.tile, asked));
  ScheduleBuilder& builder = draft.builder;
  const bool gathers = draft.ranks() > 1;
  const bool by_k = problem.sharding == Sharding::k;
  const Rect widest = slice_of(problem, 0);
  std::int16_t shard = draft.a;
  if (gathers)
    shard = builder.buffer({"shard", problem.dtype, widest.rows, widest.cols, widest.rows, widest.cols});
  expect_product(draft, shard, !gathers);
  const auto slots = static_cast<std::int32_t>(problem.m * problem.gpus);
  const std::int16_t gathered =
      gathers && by_k
          ? builder.buffer({"gathered", problem.dtype, slots, widest.cols, draft.tile.m, draft.tile.k})
          : draft.a;
  const auto m = static_cast<std::int32_t>(problem.m);
  const auto n = static_cast<std::int32_t>(problem.n);
  const auto k = static_cast<std::int32_t>(problem.k);
  const std::int16_t parts = add_buffer_of_parts(builder, library, problem.m, n);
  const std::int16_t arrived =
      gathers ? builder.flags("arrived", library_channels(machine) * draft.ranks()) : std::int16_t{-1};
  GatherNodes nodes;
  if (gathers) {
    nodes = gather_nodes(builder, machine, draft.ranks(),
                         [&](int rank) { return slot_of(problem, rank, gathered == draft.a); });
  }
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    std::vector<std::int32_t> kernels;
    if (gathers) kernels.push_back(all_gather_kernel(draft, rank, shard, gathered, arrived, nodes));
    if (gathers && by_k) kernels.push_back(copy_into_slices(draft, rank, gathered));
    for (const std::int32_t kernel : add_library_gemm(
             builder, machine,
             {rank, draft.a, draft.b, k, draft.c, {0, 0, m, n}, parts, problem.dtype, library})) {
      kernels.push_back(kernel);
    }
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    if (gathers) builder.host_work(rank, kCollectiveCall);
    for (const std::int32_t kernel : kernels) builder.launch(rank, kernel, 0);
    builder.host(rank, HostOpKind::device_synchronize);
    if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax
