// Library baseline: vendor GEMM, host synchronisation, all-gather of the collective library, copies into
// column slices.
//
//   stream 0, GEMM, one workgroup per tile:   matmul; store into `own`
//             or, split along K:            matmul of a part; store into `parts`, then a kernel that adds
//                                           the parts up
//   host:                                   stream synchronisation, framework, collective call
//   stream 1, ALL-GATHER, one workgroup a channel:
//       for peers, then here: for chunks of the channel: copy chunk of `own` -> own slot of
//                                                        `gathered`
//       for peers: arrived[channel][own] += 1 at the peer (system scope)
//       for peers: wait arrived[channel][peer]
//   stream 1, COPY:                         slots of `gathered` -> column slices of C
//   host:                                   stream synchronisation
//
// The collective needs contiguous blocks, but C has column slices: hence the slots and the copies (ROCm/iris
// docs/FINEGRAINED_OVERLAP.md, where the reference gathers into non-contiguous slices). This is the form
// eager-slices; model/workload/launching.hpp lists the parts that other forms leave out. Of the other knobs
// only `host_barriers` counts.
// `host_barriers` counts.

#include <vector>

#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/workloads/gemm_all_scatter/draft.hpp"

namespace tritax {

namespace {

LibraryTile choose(const GemmAllScatter& gemm, const Machine& machine) {
  const std::int64_t least = owned_columns(gemm, gemm.gpus - 1).size();
  return library_tile({gemm.m, widest_block(gemm), gemm.k, gemm.dtype, least}, machine);
}

// Slot of `rank` in the staging buffer, M rows high.
Rect slot_of(const GemmAllScatter& gemm, int rank) {
  const auto m = static_cast<std::int32_t>(gemm.m);
  return {rank * m, 0, m, static_cast<std::int32_t>(owned_columns(gemm, rank).size())};
}

// The product of a rank: into `own`, or into its place in C if `own` < 0.
LibraryGemmPlan plan_of(const PatternDraft& draft, int rank, const LibraryTile& library, std::int16_t own,
                        std::int16_t parts) {
  const auto columns = owned_columns(draft.workload, rank);
  Rect block{0, 0, static_cast<std::int32_t>(draft.workload.m), static_cast<std::int32_t>(columns.size())};
  if (own < 0) block.col = static_cast<std::int32_t>(columns.begin);
  return {rank,
          draft.a,
          draft.b,
          static_cast<std::int32_t>(draft.workload.k),
          own >= 0 ? own : draft.c,
          block,
          parts,
          draft.workload.dtype,
          library};
}

// The GEMM alone, on one GPU.
Schedule gemm_alone(PatternDraft& draft, const LibraryTile& library) {
  const std::int16_t parts =
      add_buffer_of_parts(draft.builder, library, draft.workload.m, widest_block(draft.workload));
  Graph kernels;
  for (const std::int32_t kernel :
       add_library_gemm(draft.builder, draft.machine, plan_of(draft, 0, library, -1, parts))) {
    kernels.push_back({kernel, 0});
  }
  host_program(draft.builder, 0, draft.knobs, kernels);
  return draft.builder.finish();
}

std::int32_t all_gather(PatternDraft& draft, int rank, std::int16_t own, std::int16_t gathered,
                        std::int16_t arrived, const GatherNodes& nodes) {
  const Rect slot = slot_of(draft.workload, rank);
  const double widest_bytes =
      static_cast<double>(slot.rows) * widest_block(draft.workload) * bytes_of(draft.workload.dtype);
  return add_library_gather(draft.builder, draft.machine,
                            {"all_gather", rank, draft.ranks(), own, gathered, slot, widest_bytes, nodes},
                            [&](std::int32_t channel) {
                              exchange_arrivals(draft.builder, draft.peers_of(rank, channel), draft.ranks(),
                                                rank, channel, arrived, LockProtocol::load_store);
                            });
}

std::int32_t copy_into_slices(PatternDraft& draft, int rank, std::int16_t gathered) {
  SliceCopy copy{rank, gathered, draft.c, {}, {}};
  for (int from = 0; from < draft.ranks(); ++from) {
    copy.slots.push_back(slot_of(draft.workload, from));
    copy.columns.push_back(static_cast<std::int32_t>(owned_columns(draft.workload, from).begin));
  }
  return add_slice_copy(draft.builder, draft.machine, copy);
}

}  // namespace

MatmulTile tile_of_library(const GemmAllScatter& gemm, const Machine& machine) {
  return choose(gemm, machine).tile;
}

Schedule build_library(const GemmAllScatter& gemm, const Machine& machine, const SharingKnobs& knobs) {
  const LibraryTile library = choose(gemm, machine);
  PatternDraft draft("library", gemm, machine, library_knobs<SharingKnobs>(library.tile, knobs));
  if (draft.ranks() == 1) return gemm_alone(draft, library);
  const auto rows = static_cast<std::int32_t>(gemm.m * gemm.gpus);
  const std::int16_t gathered =
      draft.builder.buffer({"gathered", gemm.dtype, rows, widest_block(gemm), draft.tile.m, draft.tile.n});
  const std::int16_t own = draft.builder.buffer(
      {"own", gemm.dtype, static_cast<std::int32_t>(gemm.m), widest_block(gemm), draft.tile.m, draft.tile.n});
  const std::int16_t parts = add_buffer_of_parts(draft.builder, library, gemm.m, widest_block(gemm));
  const std::int16_t arrived = draft.builder.flags("arrived", library_channels(machine) * draft.ranks());
  const GatherNodes nodes =
      gather_nodes(draft.builder, machine, draft.ranks(), [&](int rank) { return slot_of(gemm, rank); });
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    ScheduleBuilder& builder = draft.builder;
    const std::vector<std::int32_t> products =
        add_library_gemm(builder, machine, plan_of(draft, rank, library, own, parts));
    const std::int32_t gather = all_gather(draft, rank, own, gathered, arrived, nodes);
    const std::int32_t copy = copy_into_slices(draft, rank, gathered);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    for (const std::int32_t kernel : products) builder.launch(rank, kernel, 0);
    builder.host(rank, HostOpKind::stream_synchronize, 0);
    builder.host_work(rank, kFrameworkSync);
    builder.host_work(rank, kFrameworkGather);
    builder.host_work(rank, kCollectiveCall);
    builder.launch(rank, gather, 1);
    builder.launch(rank, copy, 1);
    builder.host(rank, HostOpKind::stream_synchronize, 1);
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return draft.builder.finish();
}

}  // namespace tritax
