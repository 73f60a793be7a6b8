// Library baseline of the all-scatter: vendor GEMM, host synchronisation, all-gather of the collective
// library, copies into column slices.
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
//
// Of the all-gather: blocks of rows are contiguous. The GEMM stores into `own`, the collective gathers into
// C, and the host waits for nothing in between, as in the form stream. `result_dtype` counts too.

#include <vector>

#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/workloads/gemm_all_scatter/draft.hpp"

namespace tritax {

namespace {

LibraryTile choose(const GemmAllScatter& gemm, const Machine& machine) {
  const Rect largest = owned_block(gemm, 0);
  const std::int32_t least = owned_block(gemm, gemm.gpus - 1).cols;
  return library_tile({largest.rows, largest.cols, gemm.k, gemm.dtype, least}, machine);
}

// Slot of `rank`: in C, or in the staging buffer, M rows high.
Rect slot_of(const GemmAllScatter& gemm, int rank) {
  Rect slot = owned_block(gemm, rank);
  if (gemm.blocks == Blocks::rows) return slot;
  slot.row = rank * slot.rows;
  slot.col = 0;
  return slot;
}

// The product of a rank: into `own`, or into its place in C if `own` < 0.
LibraryGemmPlan plan_of(const PatternDraft& draft, int rank, const LibraryTile& library, std::int16_t own,
                        std::int16_t parts) {
  Rect block = owned_block(draft.workload, rank);
  if (own >= 0) block.row = block.col = 0;
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
  const Rect block = owned_block(draft.workload, 0);
  const std::int16_t parts = add_buffer_of_parts(draft.builder, library, block.rows, block.cols);
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
  const Rect largest = owned_block(draft.workload, 0);
  const double widest_bytes = static_cast<double>(largest.rows) * largest.cols * bytes_of(draft.c_dtype());
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
    copy.columns.push_back(owned_block(draft.workload, from).col);
  }
  return add_slice_copy(draft.builder, draft.machine, copy);
}

}  // namespace

MatmulTile tile_of_library(const GemmAllScatter& gemm, const Machine& machine) {
  return choose(gemm, machine).tile;
}

Schedule build_library(const GemmAllScatter& gemm, const Machine& machine, const SumKnobs& knobs) {
  const LibraryTile library = choose(gemm, machine);
  SumKnobs of_library = library_knobs<SumKnobs>(library.tile, knobs);
  of_library.result = knobs.result;
  PatternDraft draft("library", gemm, machine, of_library);
  if (draft.ranks() == 1) return gemm_alone(draft, library);
  const bool slices = gemm.blocks == Blocks::columns;
  const Rect block = owned_block(gemm, 0);
  const auto add = [&](const char* name, std::int32_t rows) {
    return draft.builder.buffer({name, draft.c_dtype(), rows, block.cols, draft.tile.m, draft.tile.n});
  };
  const std::int16_t gathered = slices ? add("gathered", block.rows * gemm.gpus) : draft.c;
  const std::int16_t own = add("own", block.rows);
  const std::int16_t parts = add_buffer_of_parts(draft.builder, library, block.rows, block.cols);
  const std::int16_t arrived = draft.builder.flags("arrived", library_channels(machine) * draft.ranks());
  const GatherNodes nodes =
      gather_nodes(draft.builder, machine, draft.ranks(), [&](int rank) { return slot_of(gemm, rank); });
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    ScheduleBuilder& builder = draft.builder;
    const std::vector<std::int32_t> products =
        add_library_gemm(builder, machine, plan_of(draft, rank, library, own, parts));
    const std::int32_t gather = all_gather(draft, rank, own, gathered, arrived, nodes);
    const std::int32_t copy = slices ? copy_into_slices(draft, rank, gathered) : -1;
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    for (const std::int32_t kernel : products) builder.launch(rank, kernel, 0);
    if (slices) {
      builder.host(rank, HostOpKind::stream_synchronize, 0);
      builder.host_work(rank, kFrameworkSync);
      builder.host_work(rank, kFrameworkGather);
    }
    builder.host_work(rank, kCollectiveCall);
    builder.launch(rank, gather, slices ? 1 : 0);
    if (slices) {
      builder.launch(rank, copy, 1);
      builder.host(rank, HostOpKind::stream_synchronize, 1);
    }
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return draft.builder.finish();
}

}  // namespace tritax
