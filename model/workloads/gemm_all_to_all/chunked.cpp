// Chunked: the own rows are multiplied chunk by chunk, and a chunk is sent while the next is computed.
//
//   stream 0, GEMM of chunk i, Gg workgroups:  for tiles of the peers: matmul; store -> staged
//                                              for own tiles:          matmul; store -> C
//   stream 1, SEND of chunk i, Gc workgroups:  waits for the GEMM of chunk i
//                                              for pieces of its blocks: copy staged -> C of the owner
//                                              last chunk: exchange arrivals
//
// Events between the streams are the only order on a GPU: there are no flags per tile, but a kernel boundary
// per chunk. With one chunk the pattern is bulk-synchronous.
#include <fmt/format.h>

#include "model/workloads/gemm_all_to_all/draft.hpp"

namespace tritax {

namespace {

std::int32_t sending_kernel(ExchangeDraft& draft, int rank, std::int32_t chunk, std::int32_t workgroups,
                            bool last) {
  const ExchangeKnobs& knobs = draft.knobs;
  const std::int32_t height = knobs.comm_tile_m > 0 ? knobs.comm_tile_m : draft.tile.m;
  const std::int32_t width = knobs.comm_tile_n > 0 ? knobs.comm_tile_n : draft.tile.n;
  Kernel kernel;
  kernel.name = fmt::format("send-{}", chunk);
  kernel.rank = rank;
  kernel.resources =
      tile_copy_resources(draft.machine.gpu, copy_resources().threads, std::int64_t{height} * width);
  kernel.placement = Placement::persistent;
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t id = builder.kernel(std::move(kernel));
  std::vector<OwnedTile> items = pieces_of(draft, rank, chunk_of(draft, rank, chunk), height, width);
  std::erase_if(items, [&](const OwnedTile& item) { return item.owner == rank; });
  for (std::int32_t q = 0; q < workgroups; ++q) {
    builder.workgroup(id);
    for (auto i = static_cast<std::size_t>(q); i < items.size(); i += static_cast<std::size_t>(workgroups)) {
      const Rect& rect = items[i].rect;
      builder.copy(draft.c, draft.place_in_c(rank, items[i]), items[i].owner, draft.staged, rect.row,
                   rect.col, rank);
    }
    if (last) exchange_end(draft, rank, q);
  }
  return id;
}

void chunked_program(ExchangeDraft& draft, int rank, const Split& split) {
  ScheduleBuilder& builder = draft.builder;
  const std::int32_t chunks = draft.sends() ? draft.knobs.chunks : 1;
  std::int32_t posted = 0;  // chunks whose SEND has been launched
  const auto post = [&](bool last) {
    builder.wait_event(rank, posted, 1);
    builder.launch(rank, sending_kernel(draft, rank, posted, split.comm, last), 1);
    ++posted;
  };
  if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  for (std::int32_t i = 0; i < chunks; ++i) {
    const Share rows =
        draft.sends() ? chunk_of(draft, rank, i) : Share{0, own_rows(draft.problem, rank).size()};
    if (rows.size() == 0) break;
    builder.launch(rank, exchange_gemm(draft, rank, fmt::format("gemm-{}", i), rows, split.gemm, false));
    if (!draft.sends()) break;
    builder.record_event(rank, i);
    // The host launches a SEND while the next GEMM is ready to run.
    if (i > 0) post(false);
  }
  if (draft.sends()) post(true);
  builder.host(rank, HostOpKind::device_synchronize);
  if (draft.knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
}

}  // namespace

Schedule build_exchange_chunked(const GemmAllToAll& problem, const Machine& machine,
                                const ExchangeKnobs& knobs) {
  ExchangeDraft draft("chunked", problem, machine, knobs);
  const Split split = split_cus(knobs, machine.gpu, draft.ranks(), Roles::in_two_kernels);
  draft.add_staged();
  draft.add_arrived(split.comm);
  for (int rank = 0; rank < draft.ranks(); ++rank) chunked_program(draft, rank, split);
  return draft.builder.finish();
}

}  // namespace tritax
