#include "model/parts/library_collectives.hpp"

#include <algorithm>

#include "model/cost/collective_cost.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_all_pairs.hpp"
#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/parts/library_nodes.hpp"

namespace tritax {

namespace {

constexpr LockProtocol kLock = LockProtocol::load_store;

void send_chunks(ScheduleBuilder& builder, const LibraryReduce& plan, std::int32_t channel,
                 std::int32_t channels, std::int32_t most_chunks) {
  const int peers = plan.ranks - 1;
  for (std::int32_t i = 0; i < most_chunks; ++i) {
    for (int step = 0; step < peers; ++step) {
      const int peer = (plan.rank + 1 + (channel + step) % peers) % plan.ranks;
      const Rect& block = plan.blocks[static_cast<std::size_t>(peer)];
      const auto [share, chunks] = channel_share(block, channel, channels, most_chunks);
      if (i >= chunks) continue;
      const Rect chunk = piece_of(share, i, chunks);
      const Rect to{chunk.row - block.row + plan.rank * plan.slot_rows, chunk.col - block.col, chunk.rows,
                    chunk.cols};
      builder.copy(plan.slots, to, peer, plan.own, chunk.row, chunk.col, plan.rank);
      builder.signal(plan.arrived, channel * plan.ranks + plan.rank, 1, peer, Scope::system, kLock);
    }
  }
}

void add_chunks(ScheduleBuilder& builder, const LibraryReduce& plan, std::int32_t channel,
                std::int32_t channels, std::int32_t most_chunks) {
  const std::vector<int> peers = peers_of(PeerOrder::rotated, plan.ranks, plan.rank, channel);
  const Rect& block = plan.blocks[static_cast<std::size_t>(plan.rank)];
  const auto [share, chunks] = channel_share(block, channel, channels, most_chunks);
  for (std::int32_t i = 0; i < chunks; ++i) {
    const Rect chunk = piece_of(share, i, chunks);
    const Rect local{chunk.row - block.row, chunk.col - block.col, chunk.rows, chunk.cols};
    builder.load(plan.own, chunk, plan.rank);
    for (const int peer : peers) {
      Rect slot = local;
      slot.row += peer * plan.slot_rows;
      builder.wait(plan.arrived, channel * plan.ranks + peer, i + 1, Scope::system, kLock);
      builder.reduce(plan.slots, slot, plan.rank);
    }
    const Rect to{plan.place.row + local.row, plan.place.col + local.col, chunk.rows, chunk.cols};
    builder.store(plan.result, to, plan.rank);
    if (!plan.everywhere) continue;
    if (most_chunks > 1) {
      builder.signal(plan.summed, channel, 1, plan.rank, Scope::gpu, kLock);
      continue;
    }
    for (const int peer : peers_of(PeerOrder::staggered, plan.ranks, plan.rank, channel))
      builder.store(plan.result, to, peer);
  }
}

void pass_sums_on(ScheduleBuilder& builder, const LibraryReduce& plan, std::int32_t channel,
                  std::int32_t channels, std::int32_t most_chunks) {
  const Rect& block = plan.blocks[static_cast<std::size_t>(plan.rank)];
  const auto [share, chunks] = channel_share(block, channel, channels, most_chunks);
  for (std::int32_t i = 0; i < chunks; ++i) {
    Rect sum = piece_of(share, i, chunks);
    sum.row += plan.place.row - block.row;
    sum.col += plan.place.col - block.col;
    builder.wait(plan.summed, channel, i + 1, Scope::gpu, kLock);
    for (const int peer : peers_of(PeerOrder::staggered, plan.ranks, plan.rank, channel))
      builder.copy(plan.result, sum, peer, plan.result, sum.row, sum.col, plan.rank);
  }
}

std::int32_t chunks_of_broadcast(const Machine& machine, double bytes) {
  return chunks_of_channel(bytes / library_channels(machine));
}

// The part of the channel's share that the root sends first to `peer`.
Rect first_part(const LibraryBroadcast& plan, std::int32_t channel, std::int32_t channels, int peer) {
  const Rect share = piece_of(plan.whole, channel, channels);
  const int part = (peer - plan.root - 1 + plan.ranks) % plan.ranks;
  return share.rows == 0 ? share : piece_of(share, part, plan.ranks - 1);
}

void broadcast_channel(ScheduleBuilder& builder, const LibraryBroadcast& plan, std::int32_t channel,
                       std::int32_t channels, std::int32_t chunks) {
  const std::vector<int> peers = peers_of(PeerOrder::staggered, plan.ranks, plan.rank, channel);
  for (std::int32_t i = 0; i < chunks; ++i) {
    const std::int32_t flag = channel * chunks + i;
    const auto chunk_of_part = [&](int peer) {
      const Rect part = first_part(plan, channel, channels, peer);
      return part.rows == 0 ? part : piece_of(part, i, chunks);
    };
    if (plan.rank == plan.root) {
      for (const int peer : peers) {
        const Rect chunk = chunk_of_part(peer);
        if (chunk.rows == 0) continue;
        builder.copy(plan.data, chunk, peer, plan.data, chunk.row, chunk.col, plan.rank);
        builder.signal(plan.arrived, flag, 1, peer, Scope::system, kLock);
      }
      continue;
    }
    const Rect chunk = chunk_of_part(plan.rank);
    if (chunk.rows == 0) continue;
    builder.wait(plan.arrived, flag, 1, Scope::system, kLock);
    for (const int peer : peers) {
      if (peer == plan.root) continue;
      builder.copy(plan.data, chunk, peer, plan.data, chunk.row, chunk.col, plan.rank);
    }
  }
}

}  // namespace

Kernel reducing_kernel(const LibraryReduce& plan, std::int32_t channels, std::int32_t chunks, int flags,
                       int crossings) {
  return collective_kernel(plan.kernel, plan.rank,
                           {.routine = is_custom(plan.custom) ? plan.custom
                                       : plan.everywhere      ? LibraryRoutine::all_reduce
                                                              : LibraryRoutine::reduce_scatter,
                            .ranks = plan.ranks,
                            .bytes = plan.widest_bytes,
                            .channels = channels,
                            .chunks = chunks,
                            .flags = flags,
                            .crossings = crossings});
}

// Adding follows sending. More chunks would shorten only the last sum, which nothing hides, and only a
// little.
std::int32_t chunks_of_reduce(double bytes) {
  constexpr std::int32_t kMostChunks = 4;
  return std::min(kMostChunks, chunks_of_channel(bytes));
}

std::int32_t broadcast_flags(const Machine& machine, double bytes) {
  return library_channels(machine) * chunks_of_broadcast(machine, bytes);
}

std::int32_t add_library_broadcast(ScheduleBuilder& builder, const Machine& machine,
                                   const LibraryBroadcast& plan) {
  constexpr int flags = 2;  // flags that cross a link one after the other
  const std::int32_t channels = library_channels(machine);
  Kernel kernel = collective_kernel(plan.kernel, plan.rank,
                                    {.routine = LibraryRoutine::broadcast,
                                     .ranks = plan.ranks,
                                     .bytes = plan.bytes,
                                     .channels = channels,
                                     .flags = flags});
  const std::int32_t id = builder.kernel(std::move(kernel));
  const std::vector<int> peers = peers_of(PeerOrder::rotated, plan.ranks, plan.rank, 0);
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    builder.workgroup(id);
    broadcast_channel(builder, plan, channel, channels, chunks_of_broadcast(machine, plan.bytes));
    exchange_arrivals(builder, peers, plan.ranks, plan.rank, channel, plan.done, kLock);
  }
  return id;
}

void add_all_reduce_flags(ScheduleBuilder& builder, const Machine& machine, LibraryReduce& plan) {
  const std::int32_t channels = library_channels(machine);
  const NodeGrid grid = node_grid(machine, plan.ranks);
  plan.arrived = builder.flags("arrived", channels * plan.ranks);
  plan.done = builder.flags("done", channels * plan.ranks);
  plan.summed = builder.flags("summed", channels);
  if (grid.several()) plan.passed = builder.flags("passed", channels * grid.nodes);
}

std::int32_t add_library_reduce(ScheduleBuilder& builder, const Machine& machine, const LibraryReduce& plan) {
  if (node_grid(machine, plan.ranks).several()) return add_reduce_over_nodes(builder, machine, plan);
  if (takes_custom(plan)) return add_custom_reduce(builder, machine, plan);
  if (takes_all_pairs(machine, plan)) return add_all_pairs_reduce(builder, machine, plan);
  const std::int32_t channels = library_channels(machine);
  const std::int32_t chunks = chunks_of_reduce(plan.widest_bytes / channels);
  const int flags = (plan.everywhere ? 2 : 1) + (plan.opened >= 0 ? 1 : 0);
  const std::int32_t id = builder.kernel(reducing_kernel(plan, channels, chunks, flags));
  const std::vector<int> peers = peers_of(PeerOrder::fixed, plan.ranks, plan.rank, 0);
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    builder.workgroup(id);
    if (plan.opened >= 0)
      exchange_arrivals(builder, peers, plan.ranks, plan.rank, channel, plan.opened, kLock);
    send_chunks(builder, plan, channel, channels, chunks);
    builder.workgroup(id);
    add_chunks(builder, plan, channel, channels, chunks);
    if (!plan.everywhere) continue;
    if (chunks > 1) {
      builder.workgroup(id);
      pass_sums_on(builder, plan, channel, channels, chunks);
    }
    exchange_arrivals(builder, peers, plan.ranks, plan.rank, channel, plan.done, kLock);
  }
  return id;
}

std::int32_t add_block_copy(ScheduleBuilder& builder, const Machine& machine, const BlockCopy& copy) {
  Kernel kernel;
  kernel.name = "copy_into_blocks";
  kernel.rank = copy.rank;
  kernel.profile = KernelProfile::vendor;
  kernel.resources = copy_resources();
  const std::int32_t workgroups = kCopiesOfCu * machine.gpu.cu_count();
  kernel.library = {.routine = copy.contiguous ? LibraryRoutine::plain : LibraryRoutine::block_copy,
                    .channels = copy.contiguous ? 0 : workgroups};
  const std::int32_t id = builder.kernel(std::move(kernel));
  const std::int32_t pieces = ceil_div(workgroups, static_cast<std::int32_t>(copy.blocks.size()));
  for (std::size_t i = 0; i < copy.blocks.size(); ++i) {
    const Rect& block = copy.blocks[i];
    for (std::int32_t j = 0; j < pieces; ++j) {
      const Rect piece = piece_of(block, j, pieces);
      if (piece.rows == 0) break;
      builder.workgroup(id);
      const Rect to{copy.places[i].row + piece.row - block.row, copy.places[i].col + piece.col - block.col,
                    piece.rows, piece.cols};
      builder.copy(copy.to, to, copy.rank, copy.from, piece.row, piece.col, copy.rank);
    }
  }
  return id;
}

Spec lists_knob() {
  Spec spec;
  spec.name = kListsKnob;
  spec.help = "call the library through a framework with a list of tensors, one per rank, which is copied";
  spec.kind = ValueKind::boolean;
  spec.shown = "lists";
  spec.not_shown = 0;
  spec.value_if_column_missing = 0;
  return spec;
}

}  // namespace tritax
