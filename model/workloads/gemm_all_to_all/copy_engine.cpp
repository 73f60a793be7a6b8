// Copy engine: as chunked, but copy engines send the chunks instead of compute units.
//
//   stream 0:      for chunks i:  GEMM of chunk i; record event i
//                  wait for the last copies of all streams; one workgroup exchanges arrivals
//   stream 1 + p:  for chunks i:  wait for event i; copy the block of p out of `staged` -> C at p
//
// Posted by a kernel, there is one GEMM kernel, in the order of the chunks:
//
//   stream 0, GEMM:   for tiles: matmul; store -> `staged`; ready[chunk, owner] += 1
//   stream 1, POST:   a workgroup per peer: for chunks: wait ready; post the copy to C at the peer
//                     exchange arrivals
//
// A block is columns of a wider matrix: one copy of rows at a stride.
#include <fmt/format.h>

#include <algorithm>

#include "model/machine/check_machine.hpp"
#include "model/workloads/gemm_all_to_all/draft.hpp"

namespace tritax {

namespace {

OwnedTile block_of_chunk(const ExchangeDraft& draft, int rank, int peer, std::int32_t chunk) {
  const Share rows = chunk_of(draft, rank, chunk);
  const Share columns = own_columns(draft.problem, peer);
  return {{static_cast<std::int32_t>(rows.begin), static_cast<std::int32_t>(columns.begin),
           static_cast<std::int32_t>(rows.size()), static_cast<std::int32_t>(columns.size())},
          peer};
}

void post_copies(ExchangeDraft& draft, int rank, std::int32_t chunk) {
  for (const int peer : draft.peers_of(rank, 0)) {
    const OwnedTile block = block_of_chunk(draft, rank, peer, chunk);
    draft.builder.wait_event(rank, chunk, 1 + peer);
    draft.builder.host_copy(rank, 1 + peer, draft.c, draft.place_in_c(rank, block), peer, draft.staged,
                            block.rect.row, block.rect.col, rank);
  }
}

std::int32_t post_blocks(ExchangeDraft& draft, int rank, std::int16_t ready, std::int16_t ended) {
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t id = posting_kernel(builder, rank, "post");
  for (const int peer : draft.peers_of(rank, 0)) {
    builder.workgroup(id);
    for (std::int32_t i = 0; i < draft.knobs.chunks; ++i) {
      const OwnedTile block = block_of_chunk(draft, rank, peer, i);
      if (block.rect.rows == 0) break;
      const std::int32_t tiles =
          ceil_div(block.rect.rows, draft.tile.m) * ceil_div(block.rect.cols, draft.tile.n);
      builder.wait(ready, i * draft.ranks() + peer, tiles, Scope::gpu, draft.knobs.lock);
      builder.post(draft.c, draft.place_in_c(rank, block), peer, draft.staged, block.rect.row, block.rect.col,
                   rank);
    }
    if (ended < 0) continue;
    builder.signal(ended, rank, 1, peer, Scope::system, draft.knobs.lock);
    builder.wait(ended, peer, 1, Scope::system, draft.knobs.lock);
  }
  return id;
}

Schedule build_posting(ExchangeDraft& draft) {
  ScheduleBuilder& builder = draft.builder;
  const std::int16_t ready = builder.flags("ready", draft.knobs.chunks * draft.ranks());
  const std::int16_t ended =
      draft.knobs.host_barriers ? std::int16_t{-1} : builder.flags("ended", draft.ranks());
  const std::int32_t workgroups = cus_beside_small_kernels(draft.machine.gpu, draft.knobs.gemm_cus);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    std::vector<OwnedTile> tiles;
    std::vector<std::int32_t> begins;  // of chunks, in rows
    for (std::int32_t i = 0; i < draft.knobs.chunks; ++i) {
      const Share rows = chunk_of(draft, rank, i);
      const auto more = pieces_of(draft, rank, rows, draft.tile.m, draft.tile.n);
      tiles.insert(tiles.end(), more.begin(), more.end());
      begins.push_back(static_cast<std::int32_t>(rows.begin));
    }
    const auto tell = [&](const OwnedTile* tile, std::int32_t) {
      if (tile == nullptr) return;
      const auto behind = std::upper_bound(begins.begin(), begins.end(), tile->rect.row);
      const auto chunk = static_cast<std::int32_t>(behind - begins.begin()) - 1;
      builder.signal(ready, chunk * draft.ranks() + tile->owner, 1, rank, Scope::gpu, draft.knobs.lock);
    };
    const std::int32_t gemm = exchange_gemm_of(draft, rank, "gemm", tiles, workgroups, tell);
    const std::int32_t post = post_blocks(draft, rank, ready, ended);
    host_program(builder, rank, draft.knobs, {{gemm, 0}, {post, 1}});
  }
  return builder.finish();
}

}  // namespace

Schedule build_exchange_copy_engine(const GemmAllToAll& problem, const Machine& machine,
                                    const ExchangeKnobs& knobs) {
  if (problem.gpus > 1) require_copy_engines(machine, "pattern 'copy-engine'");
  ExchangeDraft draft("copy-engine", problem, machine, knobs);
  draft.add_staged();
  if (draft.sends() && knobs.posts == Posts::kernel) return build_posting(draft);
  draft.add_arrived(1);
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t workgroups = all_cus(machine.gpu, knobs.gemm_cus);
  for (int rank = 0; rank < draft.ranks(); ++rank) {
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    std::int32_t posted = 0;
    for (std::int32_t i = 0; i < knobs.chunks; ++i) {
      const Share rows = draft.sends() ? chunk_of(draft, rank, i) : Share{0, own_rows(problem, rank).size()};
      if (rows.size() == 0) break;
      builder.launch(rank, exchange_gemm(draft, rank, fmt::format("gemm-{}", i), rows, workgroups, false));
      if (!draft.sends()) break;
      builder.record_event(rank, i);
      // The host posts copies while the next GEMM is ready to run.
      if (i > 0) post_copies(draft, rank, posted++);
    }
    if (draft.sends()) post_copies(draft, rank, posted);
    if (draft.arrived >= 0)
      tell_behind_copies(builder, draft.peers_of(rank, 0), draft.ranks(), rank, knobs.chunks, draft.arrived,
                         knobs.lock);
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax
