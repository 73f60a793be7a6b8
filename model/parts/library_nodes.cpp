#include "model/parts/library_nodes.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

constexpr LockProtocol kNodesLock = LockProtocol::load_store;

// Place of a rank among nodes, and the order in which a channel serves the other ranks: ranks behind the own
// one, starting at a different rank for each channel.
struct NodePlace {
  NodeGrid grid;
  int rank = 0;
  std::int32_t channel = 0;

  int node() const { return grid.node_of(rank); }
  int local() const { return grid.local_of(rank); }
  std::vector<int> locals() const {
    std::vector<int> others;
    for (int step = 0; step + 1 < grid.gpus; ++step)
      others.push_back((local() + 1 + (channel + step) % (grid.gpus - 1)) % grid.gpus);
    return others;
  }
  // `direction` 1: nodes behind the own node, in the order of service; -1: nodes before it, in the order of
  // arrival.
  std::vector<int> other_nodes(int direction) const {
    std::vector<int> others;
    for (int step = 0; step + 1 < grid.nodes; ++step) {
      const int distance = 1 + (channel + step) % (grid.nodes - 1);
      others.push_back((node() + direction * distance + grid.nodes) % grid.nodes);
    }
    return others;
  }
  int like(int other_node) const { return grid.rank_of(other_node, local()); }
  int mate(int other_local) const { return grid.rank_of(node(), other_local); }
};

// Blocks of many nodes follow each other as chunks do, so that fewer chunks are enough and simulate faster.
std::int32_t fewer_chunks(std::int32_t chunks, int ranks, int most_of_all) {
  return std::clamp(chunks, 1, std::max(1, most_of_all / ranks));
}

Rect moved(const Rect& chunk, const Rect& from, const Rect& to) {
  return {chunk.row + to.row - from.row, chunk.col + to.col - from.col, chunk.rows, chunk.cols};
}

// Blocks of all ranks that are passed on to the same place on every rank.
struct SpreadPlan {
  NodePlace at;
  std::int32_t channels = 1;
  std::int32_t most_chunks = 1;
  const std::vector<Rect>& places;  // of the blocks, in `buffer`
  std::int16_t buffer = -1;
  std::int16_t own = -1;     // buffer of the own block
  Rect own_block;            // place of the own block in `own`
  std::int16_t passed = -1;  // flags (channel, node)
  std::int16_t summed = -1;  // flags (channel): chunks of the own block that are ready; -1: all are

  ChannelShare share(const Rect& block) const {
    return channel_share(block, at.channel, channels, most_chunks);
  }
  const Rect& place_of(int rank) const { return places[static_cast<std::size_t>(rank)]; }
};

void await_own_chunk(ScheduleBuilder& builder, const SpreadPlan& plan, std::int32_t i) {
  if (plan.summed >= 0) builder.wait(plan.summed, plan.at.channel, i + 1, Scope::gpu, kNodesLock);
}

void send_on_rails(ScheduleBuilder& builder, const SpreadPlan& plan) {
  const NodePlace& at = plan.at;
  const ChannelShare part = plan.share(plan.own_block);
  for (std::int32_t i = 0; i < part.chunks; ++i) {
    const Rect chunk = part.chunk(i);
    await_own_chunk(builder, plan, i);
    for (const int node : at.other_nodes(1)) {
      builder.copy(plan.buffer, moved(chunk, plan.own_block, plan.place_of(at.rank)), at.like(node), plan.own,
                   chunk.row, chunk.col, at.rank);
      builder.signal(plan.passed, at.channel * at.grid.nodes + at.node(), 1, at.like(node), Scope::system,
                     kNodesLock);
    }
  }
}

void spread_in_node(ScheduleBuilder& builder, const SpreadPlan& plan) {
  const NodePlace& at = plan.at;
  const std::vector<int> locals = at.locals();
  const ChannelShare own = plan.share(plan.own_block);
  for (std::int32_t i = 0; i < plan.most_chunks; ++i) {
    if (i < own.chunks) {
      const Rect chunk = own.chunk(i);
      await_own_chunk(builder, plan, i);
      for (const int local : locals) {
        builder.copy(plan.buffer, moved(chunk, plan.own_block, plan.place_of(at.rank)), at.mate(local),
                     plan.own, chunk.row, chunk.col, at.rank);
      }
    }
    for (const int node : at.other_nodes(-1)) {
      const ChannelShare part = plan.share(plan.place_of(at.like(node)));
      if (i >= part.chunks) continue;
      const Rect chunk = part.chunk(i);
      builder.wait(plan.passed, at.channel * at.grid.nodes + node, i + 1, Scope::system, kNodesLock);
      for (const int local : locals) {
        builder.copy(plan.buffer, chunk, at.mate(local), plan.buffer, chunk.row, chunk.col, at.rank);
      }
    }
  }
}

// Place of a chunk of the block of `owner`, in the slot of `source`.
Rect slot_of_sum(const LibraryReduce& plan, int owner, int source, const Rect& chunk) {
  Rect slot = moved(chunk, plan.blocks[static_cast<std::size_t>(owner)], {0, 0, 0, 0});
  slot.row += source * plan.slot_rows;
  return slot;
}

struct SumPlan {
  const LibraryReduce& reduce;
  NodePlace at;
  std::int32_t channels = 1;
  std::int32_t most_chunks = 1;

  ChannelShare share(int owner) const {
    return channel_share(reduce.blocks[static_cast<std::size_t>(owner)], at.channel, channels, most_chunks);
  }
  std::int32_t flag(int source) const { return at.channel * reduce.ranks + source; }
};

void send_to_merge(ScheduleBuilder& builder, const SumPlan& plan) {
  const NodePlace& at = plan.at;
  std::vector<int> nodes = at.other_nodes(1);
  nodes.push_back(at.node());
  for (std::int32_t i = 0; i < plan.most_chunks; ++i) {
    for (const int node : nodes) {
      for (const int local : at.locals()) {
        const int owner = at.grid.rank_of(node, local);
        const ChannelShare part = plan.share(owner);
        if (i >= part.chunks) continue;
        const Rect chunk = part.chunk(i);
        const int slot = at.like(node);
        builder.copy(plan.reduce.slots, slot_of_sum(plan.reduce, owner, slot, chunk), at.mate(local),
                     plan.reduce.own, chunk.row, chunk.col, at.rank);
        builder.signal(plan.reduce.arrived, plan.flag(slot), 1, at.mate(local), Scope::system, kNodesLock);
      }
    }
  }
}

// Adds the chunks that GPUs of the own node have put into the slots of `node` to the own part of the block of
// `owner`.
void add_of_node(ScheduleBuilder& builder, const SumPlan& plan, int owner, int node, const Rect& chunk,
                 std::int32_t i) {
  builder.load(plan.reduce.own, chunk, plan.at.rank);
  for (const int local : plan.at.locals()) {
    const int slot = plan.at.grid.rank_of(node, local);
    builder.wait(plan.reduce.arrived, plan.flag(slot), i + 1, Scope::system, kNodesLock);
    builder.reduce(plan.reduce.slots, slot_of_sum(plan.reduce, owner, slot, chunk), plan.at.rank);
  }
}

void merge_for_others(ScheduleBuilder& builder, const SumPlan& plan) {
  const NodePlace& at = plan.at;
  for (std::int32_t i = 0; i < plan.most_chunks; ++i) {
    for (const int node : at.other_nodes(1)) {
      const int owner = at.like(node);
      const ChannelShare part = plan.share(owner);
      if (i >= part.chunks) continue;
      const Rect chunk = part.chunk(i);
      add_of_node(builder, plan, owner, node, chunk, i);
      builder.store(plan.reduce.slots, slot_of_sum(plan.reduce, owner, at.rank, chunk), owner);
      builder.signal(plan.reduce.arrived, plan.flag(at.rank), 1, owner, Scope::system, kNodesLock);
    }
  }
}

void add_own_sums(ScheduleBuilder& builder, const SumPlan& plan) {
  const NodePlace& at = plan.at;
  const ChannelShare part = plan.share(at.rank);
  for (std::int32_t i = 0; i < part.chunks; ++i) {
    const Rect chunk = part.chunk(i);
    add_of_node(builder, plan, at.rank, at.node(), chunk, i);
    for (const int node : at.other_nodes(-1)) {
      const int source = at.like(node);
      builder.wait(plan.reduce.arrived, plan.flag(source), i + 1, Scope::system, kNodesLock);
      builder.reduce(plan.reduce.slots, slot_of_sum(plan.reduce, at.rank, source, chunk), at.rank);
    }
    const Rect& block = plan.reduce.blocks[static_cast<std::size_t>(at.rank)];
    builder.store(plan.reduce.result, moved(chunk, block, plan.reduce.place), at.rank);
    if (plan.reduce.summed >= 0)
      builder.signal(plan.reduce.summed, at.channel, 1, at.rank, Scope::gpu, kNodesLock);
  }
}

// Sequential flags and crossings. Reduce-scatter: a flag within the node, a store and a flag to another node.
// All-reduce: also a copy and a flag to another node, and the flag at the end.
Kernel kernel_of_sums(const LibraryReduce& plan, std::int32_t channels, std::int32_t chunks) {
  const int opened = plan.opened >= 0 ? 1 : 0;
  return reducing_kernel(plan, channels, chunks, (plan.everywhere ? 4 : 2) + opened,
                         (plan.everywhere ? 5 : 2) + opened);
}

void add_spread(ScheduleBuilder& builder, const SpreadPlan& plan, std::int32_t kernel) {
  builder.workgroup(kernel);
  send_on_rails(builder, plan);
  builder.workgroup(kernel);
  spread_in_node(builder, plan);
}

}  // namespace

GatherNodes gather_nodes(ScheduleBuilder& builder, const Machine& machine, int ranks,
                         const std::function<Rect(int)>& slot_of) {
  const NodeGrid grid = node_grid(machine, ranks);
  if (!grid.several()) return {};
  GatherNodes nodes;
  nodes.passed = builder.flags("passed", library_channels(machine) * grid.nodes);
  for (int rank = 0; rank < ranks; ++rank) nodes.slots.push_back(slot_of(rank));
  return nodes;
}

std::int32_t add_gather_over_nodes(ScheduleBuilder& builder, const Machine& machine,
                                   const LibraryGather& gather,
                                   const std::function<void(std::int32_t)>& end_channel) {
  constexpr int kMostOfAll = 256;
  const NodeGrid grid = node_grid(machine, gather.ranks);
  const std::int32_t channels = library_channels(machine);
  const int crossings = end_channel ? 3 : 2;  // a copy and its flag, and the flag at the end
  const std::int32_t id = builder.kernel(collective_kernel(gather.kernel, gather.rank,
                                                           {.routine = LibraryRoutine::all_gather,
                                                            .ranks = gather.ranks,
                                                            .bytes = gather.widest_bytes,
                                                            .channels = channels,
                                                            .flags = 1,
                                                            .crossings = crossings}));
  const std::int32_t chunks =
      fewer_chunks(chunks_of_channel(gather.widest_bytes / channels), gather.ranks, kMostOfAll);
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    const SpreadPlan plan{{grid, gather.rank, channel},
                          channels,
                          chunks,
                          gather.nodes.slots,
                          gather.gathered,
                          gather.own,
                          {0, 0, gather.slot.rows, gather.slot.cols},
                          gather.nodes.passed};
    add_spread(builder, plan, id);
    const ChannelShare own = plan.share(plan.own_block);
    for (std::int32_t i = 0; i < own.chunks; ++i) {
      const Rect chunk = own.chunk(i);
      builder.copy(gather.gathered, moved(chunk, plan.own_block, gather.slot), gather.rank, gather.own,
                   chunk.row, chunk.col, gather.rank);
    }
    if (end_channel) end_channel(channel);
  }
  return id;
}

std::int32_t add_reduce_over_nodes(ScheduleBuilder& builder, const Machine& machine,
                                   const LibraryReduce& plan) {
  constexpr int kMostOfAll = 128;
  const NodeGrid grid = node_grid(machine, plan.ranks);
  const std::int32_t channels = library_channels(machine);
  const std::int32_t chunks =
      fewer_chunks(chunks_of_reduce(plan.widest_bytes / channels), plan.ranks, kMostOfAll);
  const std::int32_t id = builder.kernel(kernel_of_sums(plan, channels, chunks));
  const std::vector<int> peers = peers_of(PeerOrder::rotated, plan.ranks, plan.rank, 0);
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    const SumPlan sums{plan, {grid, plan.rank, channel}, channels, chunks};
    builder.workgroup(id);
    if (plan.opened >= 0)
      exchange_arrivals(builder, peers, plan.ranks, plan.rank, channel, plan.opened, kNodesLock);
    send_to_merge(builder, sums);
    builder.workgroup(id);
    merge_for_others(builder, sums);
    builder.workgroup(id);
    add_own_sums(builder, sums);
    if (!plan.everywhere) continue;
    // In the result, sums lie where the summands lie in `own`.
    add_spread(builder,
               {sums.at, channels, chunks, plan.blocks, plan.result, plan.result, plan.place, plan.passed,
                plan.summed},
               id);
    exchange_arrivals(builder, peers, plan.ranks, plan.rank, channel, plan.done, kNodesLock);
  }
  return id;
}

bool hands_blocks_over(const Machine& machine, int ranks) {
  return node_grid(machine, ranks).several() && machine.network.kind == NetworkKind::rails &&
         machine.gpu.arch.starts_with("sm_");
}

ExchangeNodes exchange_nodes(ScheduleBuilder& builder, const Machine& machine, int ranks, DType dtype,
                             const Rect& largest, std::function<BlockMove(int, int)> move) {
  if (!hands_blocks_over(machine, ranks)) return {};
  ExchangeNodes nodes;
  nodes.staged =
      builder.buffer({"staged", dtype, largest.rows * ranks, largest.cols, largest.rows, largest.cols});
  nodes.handed = builder.flags("handed", library_channels(machine) * node_grid(machine, ranks).gpus);
  nodes.slot_rows = largest.rows;
  nodes.move = std::move(move);
  return nodes;
}

namespace {

struct HandPlan {
  const LibraryAllToAll& exchange;
  NodePlace at;
  std::int32_t channels = 1;
  std::int32_t most_chunks = 1;

  ChannelShare share(const Rect& block) const {
    return channel_share(block, at.channel, channels, most_chunks);
  }
  // Slot of a chunk of a block for `node`, handed over by GPU `local` of the own node.
  Rect slot(const Rect& chunk, const Rect& block, int node, int local) const {
    Rect rect = moved(chunk, block, {0, 0, 0, 0});
    rect.row += at.grid.rank_of(node, local) * exchange.nodes.slot_rows;
    return rect;
  }
};

void hand_over(ScheduleBuilder& builder, const HandPlan& plan) {
  const NodePlace& at = plan.at;
  const ExchangeNodes& nodes = plan.exchange.nodes;
  for (const int node : at.other_nodes(1)) {
    for (const int local : at.locals()) {
      const Rect block = nodes.move(at.rank, at.grid.rank_of(node, local)).block;
      const ChannelShare part = plan.share(block);
      for (std::int32_t i = 0; i < part.chunks; ++i) {
        const Rect chunk = part.chunk(i);
        builder.copy(nodes.staged, plan.slot(chunk, block, node, at.local()), at.mate(local),
                     plan.exchange.own, chunk.row, chunk.col, at.rank);
        builder.signal(nodes.handed, at.channel * at.grid.gpus + at.local(), 1, at.mate(local), Scope::system,
                       kNodesLock);
      }
    }
  }
}

void send_own_block(ScheduleBuilder& builder, const HandPlan& plan, int to) {
  const BlockMove move = plan.exchange.nodes.move(plan.at.rank, to);
  const ChannelShare part = plan.share(move.block);
  for (std::int32_t i = 0; i < part.chunks; ++i) {
    const Rect chunk = part.chunk(i);
    builder.copy(plan.exchange.received, moved(chunk, move.block, move.place), to, plan.exchange.own,
                 chunk.row, chunk.col, plan.at.rank);
  }
}

// Sends along the rail, to the nodes in the order of the hand-over.
void send_along_rail(ScheduleBuilder& builder, const HandPlan& plan) {
  const NodePlace& at = plan.at;
  const ExchangeNodes& nodes = plan.exchange.nodes;
  std::vector<std::int32_t> handed(static_cast<std::size_t>(at.grid.gpus), 0);
  for (const int node : at.other_nodes(1)) {
    const int to = at.like(node);
    send_own_block(builder, plan, to);
    for (const int local : at.locals()) {
      const BlockMove move = nodes.move(at.mate(local), to);
      const ChannelShare part = plan.share(move.block);
      for (std::int32_t i = 0; i < part.chunks; ++i) {
        const Rect chunk = part.chunk(i);
        const Rect slot = plan.slot(chunk, move.block, node, local);
        builder.wait(nodes.handed, at.channel * at.grid.gpus + local,
                     ++handed[static_cast<std::size_t>(local)], Scope::system, kNodesLock);
        builder.copy(plan.exchange.received, moved(chunk, move.block, move.place), to, nodes.staged, slot.row,
                     slot.col, at.rank);
      }
    }
  }
}

}  // namespace

std::int32_t add_exchange_over_nodes(ScheduleBuilder& builder, const Machine& machine,
                                     const LibraryAllToAll& exchange) {
  constexpr int kMostOfAll = 256;
  const NodeGrid grid = node_grid(machine, exchange.ranks);
  const std::int32_t channels = library_channels(machine);
  const std::int32_t id = builder.kernel(collective_kernel(exchange.kernel, exchange.rank,
                                                           {.routine = LibraryRoutine::all_to_all,
                                                            .ranks = exchange.ranks,
                                                            .bytes = exchange.widest_bytes,
                                                            .channels = channels,
                                                            .flags = 2,
                                                            .crossings = 1}));
  const std::vector<int> peers = peers_of(PeerOrder::rotated, exchange.ranks, exchange.rank, 0);
  const std::int32_t chunks =
      fewer_chunks(chunks_of_channel(exchange.widest_bytes / channels), exchange.ranks, kMostOfAll);
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    const HandPlan plan{exchange, {grid, exchange.rank, channel}, channels, chunks};
    builder.workgroup(id);
    hand_over(builder, plan);
    builder.workgroup(id);
    send_along_rail(builder, plan);
    for (const int local : plan.at.locals()) send_own_block(builder, plan, plan.at.mate(local));
    send_own_block(builder, plan, exchange.rank);
    exchange_arrivals(builder, peers, exchange.ranks, exchange.rank, channel, exchange.arrived, kNodesLock);
  }
  return id;
}

}  // namespace tritax
