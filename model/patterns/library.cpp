// Library baseline: vendor GEMM, host synchronisation, all-gather of the collective library, copies into
// column slices.
//
//   stream 0, GEMM, one workgroup a tile:   matmul; store into the own slot of `gathered`
//   host:                                   stream synchronisation, framework, collective call
//   stream 1, ALL-GATHER, one workgroup a channel:
//       for chunks of the channel: for peers: copy chunk -> same place at the peer
//       for peers: arrived[channel][own] += 1 at the peer (system scope)
//       for peers: wait arrived[channel][peer]
//   stream 1, COPY:                         slots of `gathered` -> column slices of C
//   host:                                   stream synchronisation
//
// The collective needs contiguous blocks, C has column slices: hence the slots and the copies (ROCm/iris
// docs/FINEGRAINED_OVERLAP.md, where the reference gathers into non-contiguous slices). Of the knobs only
// `host_barriers` counts.

#include <algorithm>

#include "model/core/error.hpp"
#include "model/patterns/builders.hpp"
#include "model/patterns/common.hpp"
#include "model/patterns/library_tile.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kChunksOfChannel = 32;  // enough to follow its pace, few enough to simulate fast
constexpr std::int32_t kCopiesOfCu = 4;        // rounds of the copy kernel

// The draft of the baseline: the library's tile, and the walk order of the default knobs.
Knobs library_knobs(const GemmAllScatter& workload, const Machine& machine, const Knobs& asked) {
  const MatmulTile tile = library_tile(workload, machine.gpu);
  Knobs knobs;
  knobs.tile_m = tile.m;
  knobs.tile_n = tile.n;
  knobs.tile_k = tile.k;
  knobs.waves = tile.waves;
  knobs.pipeline = tile.pipeline;
  knobs.host_barriers = asked.host_barriers;
  return knobs;
}

// Slot of `rank` in the staging buffer, M rows high.
Rect slot_of(const GemmAllScatter& workload, int rank) {
  const auto m = static_cast<std::int32_t>(workload.m);
  return {rank * m, 0, m, static_cast<std::int32_t>(owned_columns(workload, rank).size())};
}

// Piece `index` of `count` of a rectangle, cut along rows and, when there are too few rows, along columns as
// well. Empty when there are more pieces than elements to give.
Rect piece_of(const Rect& whole, std::int32_t index, std::int32_t count) {
  const std::int32_t row_parts = std::min(whole.rows, count);
  const std::int32_t col_parts = std::min(whole.cols, std::max(1, count / row_parts));
  const std::int32_t i = index % row_parts;
  const std::int32_t j = index / row_parts;
  if (j >= col_parts) return {whole.row, whole.col, 0, 0};
  const auto cut = [](std::int32_t size, std::int32_t parts, std::int32_t part) {
    return static_cast<std::int32_t>(std::int64_t{size} * part / parts);
  };
  const std::int32_t row = cut(whole.rows, row_parts, i);
  const std::int32_t col = cut(whole.cols, col_parts, j);
  return {whole.row + row, whole.col + col, cut(whole.rows, row_parts, i + 1) - row,
          cut(whole.cols, col_parts, j + 1) - col};
}

// `gathered` < 0: straight into C, for one GPU.
std::int32_t library_gemm(PatternDraft& draft, int rank, std::int16_t gathered) {
  Kernel kernel;
  kernel.name = "library_gemm";
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const Rect slot = slot_of(draft.workload, rank);
  const auto columns_begin = static_cast<std::int32_t>(owned_columns(draft.workload, rank).begin);
  const std::int32_t tiles = draft.gemm_grid(rank).count();
  for (std::int32_t p = 0; p < tiles; ++p) {
    const std::int32_t t = first_item(draft, p, tiles);
    draft.builder.workgroup(id);
    compute_tile(draft, rank, t);
    Rect rect = draft.gemm_tile(rank, t);
    if (gathered >= 0) {
      rect.row += slot.row;
      rect.col -= columns_begin;
    }
    draft.builder.store(gathered >= 0 ? gathered : draft.c, rect, rank);
  }
  return id;
}

// Channels of the collective kernel; all of them are resident at once.
std::int32_t channels_of(const Machine& machine) {
  return std::min(machine.library.channels, machine.gpu.cu_count());
}

std::int32_t all_gather(PatternDraft& draft, int rank, std::int16_t gathered, std::int16_t arrived) {
  const std::int32_t channels = channels_of(draft.machine);
  Kernel kernel;
  kernel.name = "all_gather";
  kernel.rank = rank;
  kernel.resources = copy_resources();
  kernel.placement = Placement::persistent;
  kernel.workgroup_gb_per_s = draft.machine.library.channel_gb_per_s;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const int peers = draft.ranks() - 1;
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    draft.builder.workgroup(id);
    const Rect share = piece_of(slot_of(draft.workload, rank), channel, channels);
    const std::int32_t chunks = std::min(kChunksOfChannel, share.rows);
    for (std::int32_t i = 0; i < chunks; ++i) {
      const Rect chunk = piece_of(share, i, chunks);
      for (int step = 0; step < peers; ++step) {
        // Channels start at different peers, so that all links are busy from the start.
        const int peer = (rank + 1 + (channel + step) % peers) % draft.ranks();
        draft.builder.copy(gathered, chunk, peer, gathered, chunk.row, chunk.col, rank);
      }
    }
    exchange_arrivals(draft, rank, channel, arrived, LockProtocol::load_store);
  }
  return id;
}

std::int32_t copy_into_slices(PatternDraft& draft, int rank, std::int16_t gathered) {
  Kernel kernel;
  kernel.name = "copy_into_slices";
  kernel.rank = rank;
  kernel.resources = copy_resources();
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const std::int32_t workgroups = kCopiesOfCu * draft.machine.gpu.cu_count();
  const std::int32_t pieces = ceil_div(workgroups, draft.ranks());
  for (int from = 0; from < draft.ranks(); ++from) {
    const Rect slot = slot_of(draft.workload, from);
    const auto columns_begin = static_cast<std::int32_t>(owned_columns(draft.workload, from).begin);
    for (std::int32_t i = 0; i < pieces; ++i) {
      const Rect piece = piece_of(slot, i, pieces);
      if (piece.rows == 0) break;
      draft.builder.workgroup(id);
      const Rect to{piece.row - slot.row, columns_begin + piece.col, piece.rows, piece.cols};
      draft.builder.copy(draft.c, to, rank, gathered, piece.row, piece.col, rank);
    }
  }
  return id;
}

}  // namespace

Schedule build_gemm_of_tile(const GemmAllScatter& workload, const Machine& machine, const Knobs& knobs) {
  TRITAX_ASSERT(workload.gpus == 1, "a GEMM alone runs on one GPU");
  PatternDraft draft("gemm", workload, machine, knobs);
  host_program(draft, 0, {{library_gemm(draft, 0, -1), 0}});
  return draft.builder.finish();
}

Schedule build_library(const GemmAllScatter& workload, const Machine& machine, const Knobs& knobs) {
  PatternDraft draft("library", workload, machine, library_knobs(workload, machine, knobs));
  if (draft.ranks() == 1) {
    host_program(draft, 0, {{library_gemm(draft, 0, -1), 0}});
    return draft.builder.finish();
  }
  const auto rows = static_cast<std::int32_t>(workload.m * workload.gpus);
  const std::int16_t gathered = draft.builder.buffer(
      {"gathered", workload.dtype, rows, widest_block(workload), draft.tile.m, draft.tile.n});
  const std::int16_t arrived = draft.builder.flags("arrived", channels_of(machine) * draft.ranks());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    ScheduleBuilder& builder = draft.builder;
    const std::int32_t gemm = library_gemm(draft, rank, gathered);
    const std::int32_t gather = all_gather(draft, rank, gathered, arrived);
    const std::int32_t copy = copy_into_slices(draft, rank, gathered);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    builder.launch(rank, gemm, 0);
    builder.host(rank, HostOpKind::stream_synchronize, 0);
    builder.host(rank, HostOpKind::framework_sync);
    builder.host(rank, HostOpKind::framework_gather);
    builder.host(rank, HostOpKind::collective_call);
    builder.launch(rank, gather, 1);
    builder.launch(rank, copy, 1);
    builder.host(rank, HostOpKind::stream_synchronize, 1);
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return draft.builder.finish();
}

}  // namespace tritax
