#include "model/parts/library_all_pairs.hpp"

#include <algorithm>
#include <array>

#include "model/cost/collective_cost.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

constexpr LockProtocol kAllPairsLock = LockProtocol::load_store;
constexpr double kMostReducedBytes = 1 << 20;
constexpr double kManyChannelsBytes = 80 * 1024;

double message_bytes(const LibraryReduce& plan) { return plan.widest_bytes * plan.ranks; }

// Number of channels of an all-to-all up to a size.
struct ChannelsUpTo {
  double most_bytes = 0;
  std::int32_t channels = 0;
};
constexpr std::array<ChannelsUpTo, 3> kExchangeChannels{{{9216, 1}, {194560, 2}, {524288, 4}}};

double message_bytes(const LibraryAllToAll& plan) { return plan.widest_bytes * plan.ranks; }

// Whether all GPUs have links to each other, and no measured times of the library exist.
bool all_pairs_are_there(const Machine& machine, int ranks) {
  return ranks > 1 && ranks <= machine.gpus_per_node && machine.fabric.kind == LinkKind::mesh &&
         machine.library.small_channel_gb_per_s <= 0;
}

Rect share_of_block(const LibraryReduce& plan, int owner, std::int32_t channel, std::int32_t channels) {
  return piece_of(plan.blocks[static_cast<std::size_t>(owner)], channel, channels);
}

// Place of the own share of a sum in the result.
Rect place_of_sum(const LibraryReduce& plan, Rect share) {
  const Rect& block = plan.blocks[static_cast<std::size_t>(plan.rank)];
  share.row += plan.place.row - block.row;
  share.col += plan.place.col - block.col;
  return share;
}

void add_to_peer(ScheduleBuilder& builder, const LibraryReduce& plan, int peer, std::int32_t channel,
                 std::int32_t channels) {
  const std::int32_t row = channel * plan.ranks;
  if (plan.opened >= 0) {
    builder.signal(plan.opened, row + plan.rank, 1, peer, Scope::system, kAllPairsLock);
    builder.wait(plan.opened, row + peer, 1, Scope::system, kAllPairsLock);
  }
  const Rect& block = plan.blocks[static_cast<std::size_t>(peer)];
  const Rect share = share_of_block(plan, peer, channel, channels);
  if (share.rows > 0) {
    const Rect to{share.row - block.row + plan.rank * plan.slot_rows, share.col - block.col, share.rows,
                  share.cols};
    builder.copy(plan.slots, to, peer, plan.own, share.row, share.col, plan.rank);
    builder.signal(plan.arrived, row + plan.rank, 1, peer, Scope::system, kAllPairsLock);
  }
  const Rect own = share_of_block(plan, plan.rank, channel, channels);
  if (own.rows == 0) return;
  const Rect sum = place_of_sum(plan, own);
  builder.wait(plan.summed, channel, 1, Scope::gpu, kAllPairsLock);
  builder.copy(plan.result, sum, peer, plan.result, sum.row, sum.col, plan.rank);
  builder.signal(plan.done, row + plan.rank, 1, peer, Scope::system, kAllPairsLock);
}

void add_channel_sum(ScheduleBuilder& builder, const LibraryReduce& plan, std::int32_t channel,
                     std::int32_t channels) {
  const std::vector<int> peers = peers_of(PeerOrder::rotated, plan.ranks, plan.rank, channel);
  const std::int32_t row = channel * plan.ranks;
  const Rect& block = plan.blocks[static_cast<std::size_t>(plan.rank)];
  const Rect own = share_of_block(plan, plan.rank, channel, channels);
  if (own.rows > 0) {
    builder.load(plan.own, own, plan.rank);
    for (const int peer : peers) {
      const Rect slot{own.row - block.row + peer * plan.slot_rows, own.col - block.col, own.rows, own.cols};
      builder.wait(plan.arrived, row + peer, 1, Scope::system, kAllPairsLock);
      builder.reduce(plan.slots, slot, plan.rank);
    }
    builder.store(plan.result, place_of_sum(plan, own), plan.rank);
    builder.signal(plan.summed, channel, 1, plan.rank, Scope::gpu, kAllPairsLock);
  }
  for (const int peer : peers) {
    if (share_of_block(plan, peer, channel, channels).rows > 0)
      builder.wait(plan.done, row + peer, 1, Scope::system, kAllPairsLock);
  }
}

// Copies the channel's share of the block for `peer`; returns whether there is one.
bool copy_to_place(ScheduleBuilder& builder, const LibraryAllToAll& plan, int peer, std::int32_t channel,
                   std::int32_t channels) {
  const Rect& block = plan.blocks[static_cast<std::size_t>(peer)];
  const Rect& place = plan.places[static_cast<std::size_t>(peer)];
  const Rect share = piece_of(block, channel, channels);
  if (share.rows == 0) return false;
  const Rect to{place.row + share.row - block.row, place.col + share.col - block.col, share.rows, share.cols};
  builder.copy(plan.received, to, peer, plan.own, share.row, share.col, plan.rank);
  return true;
}

}  // namespace

bool takes_all_pairs(const Machine& machine, const LibraryReduce& plan) {
  return plan.everywhere && all_pairs_are_there(machine, plan.ranks) &&
         message_bytes(plan) < kMostReducedBytes;
}

bool takes_all_pairs(const Machine& machine, const LibraryAllToAll& exchange) {
  return exchange.equal_blocks && all_pairs_are_there(machine, exchange.ranks) &&
         message_bytes(exchange) <= kExchangeChannels.back().most_bytes;
}

bool takes_custom(const LibraryReduce& plan) {
  return is_custom(plan.custom) && plan.ranks > 1 && message_bytes(plan) <= kMostCustomBytes;
}

namespace {

void add_reducing_channels(ScheduleBuilder& builder, const LibraryReduce& plan, std::int32_t id,
                           std::int32_t channels) {
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    for (const int peer : peers_of(PeerOrder::rotated, plan.ranks, plan.rank, channel)) {
      builder.workgroup(id);
      add_to_peer(builder, plan, peer, channel, channels);
    }
    builder.workgroup(id);
    add_channel_sum(builder, plan, channel, channels);
  }
}

}  // namespace

std::int32_t add_custom_reduce(ScheduleBuilder& builder, const Machine& machine, const LibraryReduce& plan) {
  constexpr std::int32_t kWorkgroups = 36;
  const std::int32_t channels = std::min(ceil_div(kWorkgroups, plan.ranks), library_channels(machine));
  const std::int32_t id = builder.kernel(reducing_kernel(plan, channels, 1, 0));
  add_reducing_channels(builder, plan, id, channels);
  return id;
}

std::int32_t add_all_pairs_reduce(ScheduleBuilder& builder, const Machine& machine,
                                  const LibraryReduce& plan) {
  const std::int32_t asked = message_bytes(plan) < kManyChannelsBytes ? 4 : 8;
  const std::int32_t channels = std::min(asked, library_channels(machine));
  const std::int32_t id =
      builder.kernel(collective_kernel(plan.kernel, plan.rank, {LibraryRoutine::all_pairs}));
  add_reducing_channels(builder, plan, id, channels);
  return id;
}

std::int32_t add_all_pairs_exchange(ScheduleBuilder& builder, const Machine& machine,
                                    const LibraryAllToAll& exchange) {
  std::int32_t asked = 0;
  for (const ChannelsUpTo& size : kExchangeChannels) {
    asked = size.channels;
    if (message_bytes(exchange) <= size.most_bytes) break;
  }
  const std::int32_t channels = std::min(asked, library_channels(machine));
  const std::int32_t id =
      builder.kernel(collective_kernel(exchange.kernel, exchange.rank, {LibraryRoutine::all_pairs}));
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    for (const int peer : peers_of(PeerOrder::rotated, exchange.ranks, exchange.rank, channel)) {
      builder.workgroup(id);
      // Blocks are equal: a rank without data for a peer gets no data from the peer either.
      if (!copy_to_place(builder, exchange, peer, channel, channels)) continue;
      const std::int32_t row = channel * exchange.ranks;
      builder.signal(exchange.arrived, row + exchange.rank, 1, peer, Scope::system, kAllPairsLock);
      builder.wait(exchange.arrived, row + peer, 1, Scope::system, kAllPairsLock);
    }
    builder.workgroup(id);
    copy_to_place(builder, exchange, exchange.rank, channel, channels);
  }
  return id;
}

}  // namespace tritax
