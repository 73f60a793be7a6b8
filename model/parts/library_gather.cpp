#include "model/parts/library_gather.hpp"

#include <algorithm>
#include <utility>

#include "model/cost/collective_cost.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_all_pairs.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/parts/library_nodes.hpp"

namespace tritax {

Rect piece_of(const Rect& whole, std::int32_t index, std::int32_t count) {
  if (whole.rows == 0 || whole.cols == 0) return {whole.row, whole.col, 0, 0};
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

ChannelShare channel_share(const Rect& block, std::int32_t channel, std::int32_t channels,
                           std::int32_t most) {
  const Rect share = piece_of(block, channel, channels);
  return {share, std::min(most, share.rows)};
}

std::int32_t library_channels(const Machine& machine) {
  return std::min(machine.library.channels, machine.gpu.cu_count());
}

Kernel collective_kernel(std::string name, int rank, const LibraryKernel& library) {
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.profile = KernelProfile::vendor;
  kernel.library = library;
  kernel.rank = rank;
  kernel.resources = copy_resources();
  kernel.placement = Placement::persistent;
  return kernel;
}

namespace {

void copy_share(ScheduleBuilder& builder, const LibraryAllToAll& plan, int peer, std::int32_t channel,
                std::int32_t channels) {
  const Rect& block = plan.blocks[static_cast<std::size_t>(peer)];
  const Rect& place = plan.places[static_cast<std::size_t>(peer)];
  const ChannelShare part =
      channel_share(block, channel, channels, chunks_of_channel(plan.widest_bytes / channels));
  for (std::int32_t i = 0; i < part.chunks; ++i) {
    const Rect chunk = part.chunk(i);
    const Rect to{place.row + chunk.row - block.row, place.col + chunk.col - block.col, chunk.rows,
                  chunk.cols};
    builder.copy(plan.received, to, peer, plan.own, chunk.row, chunk.col, plan.rank);
  }
}

// Peers in order node by node, so that ranks at the same step all have different peers, also where links
// between nodes take longer than others (NVIDIA/nccl src/init.cc, p2pSchedule).
std::int32_t add_copies(ScheduleBuilder& builder, const NodeGrid& grid, const LibraryAllToAll& plan,
                        Kernel kernel, std::int32_t channels,
                        const std::function<void(std::int32_t)>& end_channel) {
  const std::int32_t id = builder.kernel(std::move(kernel));
  const int node = grid.node_of(plan.rank);
  const int local = grid.local_of(plan.rank);
  const int peers = plan.ranks - 1;
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    const bool idle = std::all_of(plan.blocks.begin(), plan.blocks.end(), [&](const Rect& block) {
      return piece_of(block, channel, channels).rows == 0;
    });
    if (idle && !end_channel) continue;
    builder.workgroup(id);
    for (int step = 0; step < peers; ++step) {
      const int on = 1 + (channel + step) % peers;
      const int peer = grid.rank_of(node + on / grid.gpus, local + on % grid.gpus);
      copy_share(builder, plan, peer, channel, channels);
    }
    copy_share(builder, plan, plan.rank, channel, channels);
    if (end_channel) end_channel(channel);
  }
  return id;
}

}  // namespace

std::int32_t add_library_gather(ScheduleBuilder& builder, const Machine& machine, const LibraryGather& gather,
                                const std::function<void(std::int32_t)>& end_channel) {
  if (gather.nodes.passed >= 0) return add_gather_over_nodes(builder, machine, gather, end_channel);
  const std::int32_t channels = library_channels(machine);
  const auto ranks = static_cast<std::size_t>(gather.ranks);
  const Rect block{0, 0, gather.slot.rows, gather.slot.cols};
  const LibraryAllToAll same_for_all{gather.kernel,
                                     gather.rank,
                                     gather.ranks,
                                     gather.own,
                                     gather.gathered,
                                     std::vector<Rect>(ranks, block),
                                     std::vector<Rect>(ranks, gather.slot),
                                     gather.widest_bytes};
  Kernel kernel = collective_kernel(
      gather.kernel, gather.rank, {LibraryRoutine::all_gather, gather.ranks, gather.widest_bytes, channels});
  return add_copies(builder, node_grid(machine, gather.ranks), same_for_all, std::move(kernel), channels,
                    end_channel);
}

std::int32_t add_library_all_to_all(ScheduleBuilder& builder, const Machine& machine,
                                    const LibraryAllToAll& exchange) {
  if (exchange.nodes.staged >= 0) return add_exchange_over_nodes(builder, machine, exchange);
  if (takes_all_pairs(machine, exchange)) return add_all_pairs_exchange(builder, machine, exchange);
  const std::int32_t channels = library_channels(machine);
  Kernel kernel = collective_kernel(exchange.kernel, exchange.rank,
                                    {.routine = LibraryRoutine::all_to_all,
                                     .ranks = exchange.ranks,
                                     .bytes = exchange.widest_bytes,
                                     .channels = channels,
                                     .flags = 1});
  const std::vector<int> peers = peers_of(PeerOrder::rotated, exchange.ranks, exchange.rank, 0);
  return add_copies(builder, node_grid(machine, exchange.ranks), exchange, std::move(kernel), channels,
                    [&](std::int32_t channel) {
                      exchange_arrivals(builder, peers, exchange.ranks, exchange.rank, channel,
                                        exchange.arrived, LockProtocol::load_store);
                    });
}

std::int32_t add_slice_copy(ScheduleBuilder& builder, const Machine& machine, const SliceCopy& copy) {
  Kernel kernel;
  kernel.name = "copy_into_slices";
  kernel.profile = KernelProfile::vendor;
  kernel.rank = copy.rank;
  kernel.resources = copy_resources();
  const std::int32_t workgroups = kCopiesOfCu * machine.gpu.cu_count();
  kernel.library = {.routine = LibraryRoutine::block_copy, .channels = workgroups};
  const std::int32_t id = builder.kernel(std::move(kernel));
  const std::int32_t pieces = ceil_div(workgroups, static_cast<std::int32_t>(copy.slots.size()));
  for (std::size_t from = 0; from < copy.slots.size(); ++from) {
    const Rect& slot = copy.slots[from];
    for (std::int32_t i = 0; i < pieces; ++i) {
      const Rect piece = piece_of(slot, i, pieces);
      if (piece.rows == 0) break;
      builder.workgroup(id);
      const Rect to{piece.row - slot.row, copy.columns[from] + piece.col, piece.rows, piece.cols};
      builder.copy(copy.target, to, copy.rank, copy.gathered, piece.row, piece.col, copy.rank);
    }
  }
  return id;
}

}  // namespace tritax
