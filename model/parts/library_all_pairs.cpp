#include "model/parts/library_all_pairs.hpp"

#include <algorithm>

#include "model/cost/collective_cost.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_gather.hpp"

namespace tritax {

namespace {

constexpr LockProtocol kAllPairsLock = LockProtocol::load_store;
constexpr double kMostAllPairsBytes = 1 << 20;
constexpr double kManyChannelsBytes = 80 * 1024;

double message_bytes(const LibraryReduce& plan) { return plan.widest_bytes * plan.ranks; }

// The start of collectives is that of a whole all-reduce of nearly nothing by all GPUs of a node, less what
// the steps of this kernel then take: two ways of words across a link, and the summands of all peers.
double handshake_ns(const Machine& machine) {
  const double turn_ns = vendor_turn_ns(machine);
  const double steps_ns = 2 * (turn_ns + machine.fabric.flag_latency_ns);
  const double sums_ns = (machine.gpus_per_node - 1) * turn_ns;
  return std::max(0.0, machine.library.collective_start_ns - steps_ns - sums_ns);
}

Rect share_of_block(const LibraryReduce& plan, int owner, std::int32_t channel, std::int32_t channels) {
  return piece_of(plan.blocks[static_cast<std::size_t>(owner)], channel, channels);
}

// Where the own share of a sum lies in the result.
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

}  // namespace

bool takes_all_pairs(const Machine& machine, const LibraryReduce& plan) {
  return plan.everywhere && plan.ranks > 1 && plan.ranks <= machine.gpus_per_node &&
         machine.fabric.kind == LinkKind::mesh && machine.library.small_channel_gb_per_s <= 0 &&
         message_bytes(plan) < kMostAllPairsBytes;
}

std::int32_t add_all_pairs_reduce(ScheduleBuilder& builder, const Machine& machine,
                                  const LibraryReduce& plan) {
  const std::int32_t asked = message_bytes(plan) < kManyChannelsBytes ? 4 : 8;
  const std::int32_t channels = std::min(asked, library_channels(machine));
  Kernel kernel;
  kernel.name = plan.kernel;
  kernel.rank = plan.rank;
  kernel.profile = KernelProfile::vendor;
  kernel.resources = copy_resources();
  kernel.placement = Placement::persistent;
  kernel.start_ns = handshake_ns(machine);
  kernel.payload_share = kLowLatencyPayload;
  kernel.remote_store_gb_per_s = kLowLatencyPayload * machine.gpu.cu_remote_store_gb_per_s;
  const std::int32_t id = builder.kernel(std::move(kernel));
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    for (const int peer : peers_of(PeerOrder::rotated, plan.ranks, plan.rank, channel)) {
      builder.workgroup(id);
      add_to_peer(builder, plan, peer, channel, channels);
    }
    builder.workgroup(id);
    add_channel_sum(builder, plan, channel, channels);
  }
  return id;
}

}  // namespace tritax
