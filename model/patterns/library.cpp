// Library baseline: vendor GEMM, host synchronisation, all-gather of the collective library, copies into
// column slices.
//
//   stream 0, GEMM, one workgroup a tile:   matmul; store into `own`
//             or, split along K:            matmul of a part; store into `parts`, then a kernel that adds
//             them up
//   host:                                   stream synchronisation, framework, collective call
//   stream 1, ALL-GATHER, one workgroup a channel:
//       for peers, then here: for chunks of the channel: copy chunk of `own` -> own slot of
//                                                        `gathered`
//       for peers: arrived[channel][own] += 1 at the peer (system scope)
//       for peers: wait arrived[channel][peer]
//   stream 1, COPY:                         slots of `gathered` -> column slices of C
//   host:                                   stream synchronisation
//
// The collective needs contiguous blocks, C has column slices: hence the slots and the copies (ROCm/iris
// docs/FINEGRAINED_OVERLAP.md, where the reference gathers into non-contiguous slices). Of the knobs only
// `host_barriers` counts.

#include <algorithm>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/cost/vendor_machine.hpp"
#include "model/patterns/builders.hpp"
#include "model/patterns/common.hpp"
#include "model/patterns/library_gather.hpp"
#include "model/patterns/library_tile.hpp"

namespace tritax {

namespace {

// Of the kernels around the products, whose rates are measured, their grids not: assumed, several workgroups
// for each compute unit, none for less than some thousand elements.
constexpr std::int32_t kCopiesOfCu = 4;
constexpr std::int32_t kLeastPiece = 4096;

// The baseline with the library's tile; the walk order is that of the default knobs.
struct Choice {
  LibraryTile library;
  Knobs knobs;
};

Choice choose(const GemmAllScatter& workload, const Machine& machine, const Knobs& asked) {
  Choice choice{library_tile(workload, vendor_machine(machine)), {}};
  const MatmulTile& tile = choice.library.tile;
  choice.knobs.tile_m = tile.m;
  choice.knobs.tile_n = tile.n;
  choice.knobs.tile_k = tile.k;
  choice.knobs.waves = tile.waves;
  choice.knobs.pipeline = tile.pipeline;
  choice.knobs.host_barriers = asked.host_barriers;
  return choice;
}

// Slot of `rank` in the staging buffer, M rows high.
Rect slot_of(const GemmAllScatter& workload, int rank) {
  const auto m = static_cast<std::int32_t>(workload.m);
  return {rank * m, 0, m, static_cast<std::int32_t>(owned_columns(workload, rank).size())};
}

// Where the GEMM of a rank leaves its columns.
struct Target {
  std::int16_t buffer = -1;
  Rect rect;
};

// In a buffer of their own, or, `own` < 0, in their place in C.
Target target_of(const PatternDraft& draft, int rank, std::int16_t own) {
  const auto columns = owned_columns(draft.workload, rank);
  const auto begin = static_cast<std::int32_t>(columns.begin);
  const Rect block{0, 0, static_cast<std::int32_t>(draft.workload.m),
                   static_cast<std::int32_t>(columns.size())};
  return own >= 0 ? Target{own, block} : Target{draft.c, {0, begin, block.rows, block.cols}};
}

Rect inside(const Target& target, const Rect& piece) {
  return {target.rect.row + piece.row, target.rect.col + piece.col, piece.rows, piece.cols};
}

// The kernel that computes; with several parts of K into `parts`, part by part one below the other. Where
// finished tiles leave beside the next matmul the kernel is persistent, else every tile has its workgroup.
std::int32_t compute_kernel(PatternDraft& draft, int rank, const LibraryTile& library, const Target& target) {
  Kernel kernel;
  kernel.name = "library_gemm";
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  kernel.matmul_share = library.matmul_share;
  kernel.start_ns = draft.machine.library.kernel_start_ns;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const auto k = static_cast<std::int32_t>(draft.workload.k);
  const auto depth = static_cast<std::int32_t>(depth_of_part(draft.workload.k, library));
  const auto columns_begin = static_cast<std::int32_t>(owned_columns(draft.workload, rank).begin);
  const std::int32_t tiles = draft.gemm_grid(rank).count();
  const std::int32_t items = tiles * library.parts;
  const Gpu& gpu = draft.machine.gpu;
  const std::int32_t workgroups = gpu.async_tile_store ? std::min(items, gpu.cu_count()) : items;
  for (std::int32_t p = 0; p < workgroups; ++p) {
    draft.builder.workgroup(id);
    for (std::int32_t item = p; item < items; item += workgroups) {
      // The parts of a tile run side by side.
      const std::int32_t part = item % library.parts;
      Rect rect = draft.gemm_tile(rank, first_item(draft, item / library.parts, tiles));
      rect.col -= columns_begin;  // matmul counts columns within the own block of B
      draft.builder.matmul(draft.a, draft.b, rect, part * depth, std::min(k, (part + 1) * depth));
      rect.row += part * (library.parts > 1 ? target.rect.rows : 0);
      draft.builder.store(target.buffer, inside(target, rect), rank);
    }
  }
  return id;
}

// The kernel that adds up the parts of K.
std::int32_t adding_kernel(PatternDraft& draft, int rank, std::int32_t parts, const Target& from,
                           const Target& target) {
  Kernel kernel;
  kernel.name = std::string(kAddingKernel);
  kernel.rank = rank;
  kernel.resources = copy_resources();
  kernel.start_ns = draft.machine.library.kernel_start_ns;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
  const Rect whole{0, 0, target.rect.rows, target.rect.cols};
  const std::int64_t worth = std::int64_t{whole.rows} * whole.cols / kLeastPiece;
  const std::int32_t most = kCopiesOfCu * draft.machine.gpu.cu_count();
  const auto pieces = static_cast<std::int32_t>(std::clamp<std::int64_t>(worth, 1, most));
  for (std::int32_t i = 0; i < pieces; ++i) {
    const Rect piece = piece_of(whole, i, pieces);
    if (piece.rows == 0) break;
    draft.builder.workgroup(id);
    Rect part = piece;
    draft.builder.load(from.buffer, part, rank);
    for (std::int32_t other = 1; other < parts; ++other) {
      part.row += target.rect.rows;
      draft.builder.reduce(from.buffer, part, rank);
    }
    draft.builder.store(target.buffer, inside(target, piece), rank);
  }
  return id;
}

// All kernels of the GEMM of a rank, in order. `own` < 0: straight into C, for one GPU. `parts`: the buffer
// for the parts of K, if there are several.
std::vector<std::int32_t> library_gemm(PatternDraft& draft, int rank, const LibraryTile& library,
                                       std::int16_t own, std::int16_t parts) {
  const Target target = target_of(draft, rank, own);
  if (library.parts == 1) return {compute_kernel(draft, rank, library, target)};
  const Target between{parts, {0, 0, target.rect.rows, target.rect.cols}};
  const std::int32_t computing = compute_kernel(draft, rank, library, between);
  return {computing, adding_kernel(draft, rank, library.parts, between, target)};
}

// Buffer for the parts of K; -1 if there is only one.
std::int16_t buffer_of_parts(PatternDraft& draft, const LibraryTile& library) {
  if (library.parts == 1) return -1;
  const auto rows = static_cast<std::int32_t>(draft.workload.m * library.parts);
  return draft.builder.buffer(
      {"parts", DType::fp32, rows, widest_block(draft.workload), draft.tile.m, draft.tile.n});
}

// The GEMM alone, on one GPU.
Schedule gemm_alone(PatternDraft& draft, const LibraryTile& library) {
  Graph kernels;
  for (const std::int32_t kernel : library_gemm(draft, 0, library, -1, buffer_of_parts(draft, library))) {
    kernels.push_back({kernel, 0});
  }
  host_program(draft, 0, kernels);
  return draft.builder.finish();
}

std::int32_t all_gather(PatternDraft& draft, int rank, std::int16_t own, std::int16_t gathered,
                        std::int16_t arrived) {
  const Rect slot = slot_of(draft.workload, rank);
  const double widest_bytes =
      static_cast<double>(slot.rows) * widest_block(draft.workload) * bytes_of(draft.workload.dtype);
  return add_library_gather(draft.builder, draft.machine,
                            {"all_gather", rank, draft.ranks(), own, gathered, slot, widest_bytes},
                            [&](std::int32_t channel) {
                              exchange_arrivals(draft, rank, channel, arrived, LockProtocol::load_store);
                            });
}

// All workgroups are resident together, so each has its part of what the framework's copy reaches.
std::int32_t copy_into_slices(PatternDraft& draft, int rank, std::int16_t gathered) {
  Kernel kernel;
  kernel.name = "copy_into_slices";
  kernel.rank = rank;
  kernel.resources = copy_resources();
  kernel.start_ns = draft.machine.library.kernel_start_ns;
  const std::int32_t workgroups = kCopiesOfCu * draft.machine.gpu.cu_count();
  kernel.workgroup_gb_per_s = draft.machine.library.slice_copy_gb_per_s / workgroups;
  const std::int32_t id = draft.builder.kernel(std::move(kernel));
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

MatmulTile tile_of_library(const GemmAllScatter& workload, const Machine& machine) {
  return library_tile(workload, vendor_machine(machine)).tile;
}

Schedule build_gemm_of_tile(const GemmAllScatter& workload, const Machine& machine, const Knobs& knobs) {
  TRITAX_ASSERT(workload.gpus == 1, "a GEMM alone runs on one GPU");
  PatternDraft draft("gemm", workload, machine, knobs);
  draft.builder.vendor();
  return gemm_alone(draft, {draft.tile, 1});
}

Schedule build_library(const GemmAllScatter& workload, const Machine& machine, const Knobs& knobs) {
  const Choice choice = choose(workload, machine, knobs);
  PatternDraft draft("library", workload, machine, choice.knobs);
  draft.builder.vendor();
  if (draft.ranks() == 1) return gemm_alone(draft, choice.library);
  const auto rows = static_cast<std::int32_t>(workload.m * workload.gpus);
  const std::int16_t gathered = draft.builder.buffer(
      {"gathered", workload.dtype, rows, widest_block(workload), draft.tile.m, draft.tile.n});
  const std::int16_t own = draft.builder.buffer({"own", workload.dtype, static_cast<std::int32_t>(workload.m),
                                                 widest_block(workload), draft.tile.m, draft.tile.n});
  const std::int16_t parts = buffer_of_parts(draft, choice.library);
  const std::int16_t arrived = draft.builder.flags("arrived", library_channels(machine) * draft.ranks());
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    ScheduleBuilder& builder = draft.builder;
    const std::vector<std::int32_t> gemm = library_gemm(draft, rank, choice.library, own, parts);
    const std::int32_t gather = all_gather(draft, rank, own, gathered, arrived);
    const std::int32_t copy = copy_into_slices(draft, rank, gathered);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    for (const std::int32_t kernel : gemm) builder.launch(rank, kernel, 0);
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
