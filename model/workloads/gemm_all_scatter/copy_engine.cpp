// Copy engine: the own rows are multiplied chunk by chunk, and copy engines send the finished chunks to all
// peers (ROCm/mori python/mori/ops/gemm_ag: split-sdma with one chunk posted by the host, fused-sdma with
// chunks posted by a kernel).
//
//   stream 0:      for chunks i:  GEMM of chunk i; record event i
//                  wait for the last copies of all streams; one workgroup exchanges arrivals
//   stream 1 + p:  for chunks i:  wait for event i; copy C(chunk i) -> C at p
//
// Posted by a kernel, there is one GEMM kernel, in the order of the chunks:
//
//   stream 0, GEMM:   for tiles: matmul; store C(t); ready[chunk] += 1
//   stream 1, POST:   a workgroup per peer: for chunks: wait ready; post the copy to C at the peer
//                     exchange arrivals
//
// A chunk of rows is contiguous, and the same for all peers: nothing is staged.
#include <fmt/format.h>

#include "model/machine/check_machine.hpp"
#include "model/workloads/gemm_all_scatter/draft.hpp"

namespace tritax {

namespace {

// Chunk `i` of the own block: whole tiles except in the last chunk; empty beyond it.
Rect chunk_of(const PatternDraft& draft, int rank, std::int32_t i) {
  Rect chunk = owned_block(draft.workload, rank);
  const Share rows = piece_of_rows(chunk.rows, i, draft.knobs.chunks, draft.tile.m);
  chunk.row += static_cast<std::int32_t>(rows.begin);
  chunk.rows = static_cast<std::int32_t>(rows.size());
  return chunk;
}

std::int32_t tiles_in(const PatternDraft& draft, const Rect& chunk) {
  return ceil_div(chunk.rows, draft.tile.m) * ceil_div(chunk.cols, draft.tile.n);
}

// A persistent GEMM kernel for chunks [first, end), which counts the tiles of each unless ready < 0.
std::int32_t gemm_of_chunks(PatternDraft& draft, int rank, std::string_view name, std::int32_t first,
                            std::int32_t end, std::int32_t workgroups, std::int16_t ready) {
  struct Tile {
    Rect rect;
    std::int32_t chunk = 0;
  };
  std::vector<Tile> tiles;
  for (std::int32_t i = first; i < end; ++i) {
    const Rect chunk = chunk_of(draft, rank, i);
    for (std::int32_t t = 0; t < tiles_in(draft, chunk); ++t)
      tiles.push_back({gemm_tile(draft, chunk, t), i});
  }
  Kernel kernel;
  kernel.name = name;
  kernel.rank = rank;
  kernel.resources = draft.gemm_resources;
  kernel.tile = draft.tile;
  kernel.placement = Placement::persistent;
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t id = builder.kernel(std::move(kernel));
  for (std::int32_t p = 0; p < workgroups; ++p) {
    builder.workgroup(id);
    for (auto i = static_cast<std::size_t>(draft.first_item(p, workgroups)); i < tiles.size();
         i += static_cast<std::size_t>(workgroups)) {
      multiply(draft, rank, tiles[i].rect, 0, static_cast<std::int32_t>(draft.workload.k));
      builder.store(draft.c, tiles[i].rect, rank);
      if (ready >= 0) builder.signal(ready, tiles[i].chunk, 1, rank, Scope::gpu, draft.knobs.lock);
    }
  }
  return id;
}

void post_copies(PatternDraft& draft, int rank, std::int32_t i) {
  const Rect chunk = chunk_of(draft, rank, i);
  for (const int peer : draft.peers_of(rank, 0)) {
    draft.builder.wait_event(rank, i, 1 + peer);
    draft.builder.host_copy(rank, 1 + peer, draft.c, chunk, peer, draft.c, chunk.row, chunk.col, rank);
  }
}

void add_program_of_host(PatternDraft& draft, int rank) {
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t workgroups = all_cus(draft.machine.gpu, draft.knobs.gemm_cus);
  const bool sends = draft.ranks() > 1;
  if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  std::int32_t posted = 0;
  for (std::int32_t i = 0; i < draft.knobs.chunks && chunk_of(draft, rank, i).rows > 0; ++i) {
    const std::string name = fmt::format("gemm-{}", i);
    builder.launch(rank, gemm_of_chunks(draft, rank, name, i, i + 1, workgroups, -1));
    if (!sends) continue;
    builder.record_event(rank, i);
    // The host posts copies while the next GEMM is ready to run.
    if (i > 0) post_copies(draft, rank, posted++);
  }
  if (sends) post_copies(draft, rank, posted);
  if (draft.arrived >= 0)
    tell_behind_copies(builder, draft.peers_of(rank, 0), draft.ranks(), rank, draft.knobs.chunks,
                       draft.arrived, draft.knobs.lock);
  builder.host(rank, HostOpKind::device_synchronize);
  if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
}

std::int32_t post_chunks(PatternDraft& draft, int rank, std::int16_t ready) {
  ScheduleBuilder& builder = draft.builder;
  const LockProtocol lock = draft.knobs.lock;
  const std::int32_t id = posting_kernel(builder, rank, "post");
  for (const int peer : draft.peers_of(rank, 0)) {
    builder.workgroup(id);
    for (std::int32_t i = 0; i < draft.knobs.chunks; ++i) {
      const Rect chunk = chunk_of(draft, rank, i);
      if (chunk.rows == 0) break;
      builder.wait(ready, i, tiles_in(draft, chunk), Scope::gpu, lock);
      builder.post(draft.c, chunk, peer, draft.c, chunk.row, chunk.col, rank);
    }
    if (draft.arrived < 0) continue;
    builder.signal(draft.arrived, rank, 1, peer, Scope::system, lock);
    builder.wait(draft.arrived, peer, 1, Scope::system, lock);
  }
  return id;
}

}  // namespace

Schedule build_copy_engine(const GemmAllScatter& gemm, const Machine& machine, const SumKnobs& knobs) {
  if (gemm.gpus > 1) require_copy_engines(machine, "pattern 'copy-engine'");
  PatternDraft draft("copy-engine", gemm, machine, knobs);
  if (draft.ranks() == 1) draft.knobs.chunks = 1;
  draft.add_arrived(1);
  const bool by_kernel = knobs.posts == Posts::kernel && draft.ranks() > 1;
  const std::int16_t ready = by_kernel ? draft.builder.flags("ready", draft.knobs.chunks) : std::int16_t{-1};
  const std::int32_t workgroups = cus_beside_small_kernels(machine.gpu, knobs.gemm_cus);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    if (!by_kernel) {
      add_program_of_host(draft, rank);
      continue;
    }
    const std::int32_t gemm_kernel =
        gemm_of_chunks(draft, rank, "gemm", 0, draft.knobs.chunks, workgroups, ready);
    host_program(draft.builder, rank, knobs, {{gemm_kernel, 0}, {post_chunks(draft, rank, ready), 1}});
  }
  return draft.builder.finish();
}

}  // namespace tritax
