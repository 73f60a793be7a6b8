// Kernels of a vendor's collective library that only move data: all-gather and all-to-all.
//
//   one workgroup a channel, all resident:
//       for peers, then here: for chunks of the channel: copy chunk of the block for them -> its place there
//
// Over several nodes blocks take another way: library_nodes.hpp.
//
// Channels start at different peers, so that all links are busy from the start. Frameworks gather into a
// separate buffer, so that the own block is copied too; only copies across a link keep the pace of the
// protocol (model/cost/kernel_rates.hpp). An all-gather uses rings. Blocks of an all-to-all are separate
// sends and receives, each straight to its peer in one step (NCCL and RCCL: ncclSend, ncclRecv). Small
// all-to-alls with blocks of equal size go all pairs over a full mesh: library_all_pairs.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/cost/collective_cost.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

// Piece `index` of `count` of a rectangle, cut along rows, and along columns too where there are too few
// rows. Empty where there are more pieces than elements.
Rect piece_of(const Rect& whole, std::int32_t index, std::int32_t count);

// A kernel of a vendor's collective library; all its workgroups are resident.
Kernel collective_kernel(std::string name, int rank, const LibraryKernel& library);

// Channels of the library on this machine: at most one per compute unit.
std::int32_t library_channels(const Machine& machine);

// A channel's share of a block, in at most `most` chunks.
struct ChannelShare {
  Rect share;
  std::int32_t chunks = 0;
  Rect chunk(std::int32_t i) const { return piece_of(share, i, chunks); }
};
ChannelShare channel_share(const Rect& block, std::int32_t channel, std::int32_t channels, std::int32_t most);

// Additional flags and slots of an all-gather over several nodes (library_nodes.hpp); unset on one node.
struct GatherNodes {
  std::int16_t passed = -1;  // flags (channel, node): chunks that have arrived from the node
  std::vector<Rect> slots;   // by rank: place of its block in `gathered`
};

struct LibraryGather {
  std::string kernel;  // name
  int rank = 0;
  int ranks = 1;
  std::int16_t own = -1;       // buffer of the rank's block, which begins at the origin
  std::int16_t gathered = -1;  // buffer that holds the blocks of all ranks
  Rect slot;                   // of the rank's block in `gathered`
  double widest_bytes = 0;     // of the largest block of all ranks, so that all ranks choose one protocol
  GatherNodes nodes{};
};

// Adds the flags, and records where the block of each rank lies.
GatherNodes gather_nodes(ScheduleBuilder& builder, const Machine& machine, int ranks,
                         const std::function<Rect(int rank)>& slot_of);

// Adds the kernel and returns its number. `end_channel` adds the end of a channel; without it, channels that
// have nothing to copy are left out.
std::int32_t add_library_gather(ScheduleBuilder& builder, const Machine& machine, const LibraryGather& gather,
                                const std::function<void(std::int32_t channel)>& end_channel = {});

// Additional buffers of an all-to-all over several nodes (library_nodes.hpp); unset on one node.
struct BlockMove {
  Rect block;  // in `own` of the sending rank
  Rect place;  // in `received` of the receiving rank
};
struct ExchangeNodes {
  std::int16_t staged = -1;  // buffer of slots for blocks on their way, by (node, GPU of the own node)
  std::int16_t handed = -1;  // flags (channel, GPU of the node): chunks that this GPU has put into its slots
  std::int32_t slot_rows = 0;
  std::function<BlockMove(int from, int to)> move;
};

struct LibraryAllToAll {
  std::string kernel;  // name
  int rank = 0;
  int ranks = 1;
  std::int16_t own = -1;       // buffer of the blocks to send
  std::int16_t received = -1;  // buffer of the received blocks
  std::vector<Rect> blocks;    // in `own`, by receiving rank
  std::vector<Rect> places;    // of these blocks in `received` of the receiving rank
  double widest_bytes = 0;     // of the largest block of all ranks, so that all ranks choose one protocol
  std::int16_t arrived = -1;   // flags (channel, rank), raised at the end: all blocks have arrived
  bool equal_blocks =
      false;  // whether all blocks of all ranks are equal: the library's all-to-all; else sends and receives
  ExchangeNodes nodes{};
};

// Adds the buffer and the flags; `largest` of all blocks. Unset unless a vendor's library hands blocks over
// (NVIDIA's, on rails).
ExchangeNodes exchange_nodes(ScheduleBuilder& builder, const Machine& machine, int ranks, DType dtype,
                             const Rect& largest, std::function<BlockMove(int from, int to)> move);

// Adds the kernel of an all-to-all and returns its number.
std::int32_t add_library_all_to_all(ScheduleBuilder& builder, const Machine& machine,
                                    const LibraryAllToAll& exchange);

// A framework's copy of gathered blocks into slices of columns of one matrix.
struct SliceCopy {
  int rank = 0;
  std::int16_t gathered = -1;
  std::int16_t target = -1;
  std::vector<Rect> slots;            // of the ranks' blocks, in `gathered`
  std::vector<std::int32_t> columns;  // first column of each block in the target
};

// Adds the kernel "copy_into_slices" and returns its number. All workgroups are resident together, so that
// each has an equal part of the throughput of the framework's copy.
std::int32_t add_slice_copy(ScheduleBuilder& builder, const Machine& machine, const SliceCopy& copy);

}  // namespace tritax
