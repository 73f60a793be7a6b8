// The kernels of a vendor's collective library that only move data: all-gather and all-to-all.
//
//   one workgroup a channel, all resident:
//       for peers, then here: for chunks of the channel: copy chunk of the block for them -> its place there
//
// Over several nodes they go another way: library_nodes.hpp.
//
// Channels start at different peers, so that all links are busy from the start. Frameworks gather into other
// memory than they gather from, so that the own block is copied as well; only what crosses a link keeps the
// pace of the protocol (model/cost/kernel_rates.hpp). An all-gather goes around rings; the blocks of an
// all-to-all are sends and receives of their own, each straight to its peer in one step (NCCL and RCCL:
// ncclSend, ncclRecv). Small ones of blocks of one size go all pairs over a full mesh: library_all_pairs.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/cost/collective_cost.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

// Piece `index` of `count` of a rectangle, cut along rows and, when there are too few rows, along columns as
// well. Empty when there are more pieces than elements to give.
Rect piece_of(const Rect& whole, std::int32_t index, std::int32_t count);

// A kernel of a vendor's collective library, all of whose workgroups are resident.
Kernel collective_kernel(std::string name, int rank, const LibraryKernel& library);

// Channels of the library on this machine: no more than compute units.
std::int32_t library_channels(const Machine& machine);

// What a channel has of a block, in at most `most` chunks.
struct ChannelShare {
  Rect share;
  std::int32_t chunks = 0;
  Rect chunk(std::int32_t i) const { return piece_of(share, i, chunks); }
};
ChannelShare channel_share(const Rect& block, std::int32_t channel, std::int32_t channels, std::int32_t most);

// What an all-gather needs where it goes over several nodes (library_nodes.hpp); nothing on one.
struct GatherNodes {
  std::int16_t passed = -1;  // flags (channel, node): chunks that have come from there
  std::vector<Rect> slots;   // of the blocks of all ranks in `gathered`
};

struct LibraryGather {
  std::string kernel;  // name
  int rank = 0;
  int ranks = 1;
  std::int16_t own = -1;       // buffer of the rank's block, from its origin on
  std::int16_t gathered = -1;  // buffer that holds the blocks of all ranks
  Rect slot;                   // of the rank's block in `gathered`
  double widest_bytes = 0;     // of the largest block of all ranks: they take one protocol
  GatherNodes nodes{};
};

// Adds the flags that it needs and says where the block of each rank comes to lie.
GatherNodes gather_nodes(ScheduleBuilder& builder, const Machine& machine, int ranks,
                         const std::function<Rect(int rank)>& slot_of);

// Adds the kernel and gives its number. `end_channel` adds what a channel does at last; without it channels
// that have nothing to copy are left out.
std::int32_t add_library_gather(ScheduleBuilder& builder, const Machine& machine, const LibraryGather& gather,
                                const std::function<void(std::int32_t channel)>& end_channel = {});

// What an all-to-all needs where it goes over several nodes (library_nodes.hpp); nothing on one.
struct BlockMove {
  Rect block;  // of `own` of the rank that sends it
  Rect place;  // in `received` of the rank that gets it
};
struct ExchangeNodes {
  std::int16_t staged = -1;  // buffer of slots for blocks on their way, of (node, GPU of the own node)
  std::int16_t handed = -1;  // flags (channel, GPU of the node): chunks that it has put there
  std::int32_t slot_rows = 0;
  std::function<BlockMove(int from, int to)> move;
};

struct LibraryAllToAll {
  std::string kernel;  // name
  int rank = 0;
  int ranks = 1;
  std::int16_t own = -1;       // buffer of what the rank sends
  std::int16_t received = -1;  // buffer of what it gets
  std::vector<Rect> blocks;    // of `own`, by the rank that gets them
  std::vector<Rect> places;    // of those in `received` there
  double widest_bytes = 0;     // of the largest block of all ranks: they take one protocol
  std::int16_t arrived = -1;   // flags (channel, rank), with which it ends: all blocks are there
  bool equal_blocks = false;   // all of all ranks: the library's all-to-all, else sends and receives
  ExchangeNodes nodes{};
};

// Adds the buffer and the flags that it needs; `largest` of all blocks. Only where a
// vendor's library hands them over (NVIDIA's, on rails).
ExchangeNodes exchange_nodes(ScheduleBuilder& builder, const Machine& machine, int ranks, DType dtype,
                             const Rect& largest, std::function<BlockMove(int from, int to)> move);

// The same for an all-to-all.
std::int32_t add_library_all_to_all(ScheduleBuilder& builder, const Machine& machine,
                                    const LibraryAllToAll& exchange);

// A framework's copy of gathered blocks into slices of columns of one matrix.
struct SliceCopy {
  int rank = 0;
  std::int16_t gathered = -1;
  std::int16_t target = -1;
  std::vector<Rect> slots;            // of the ranks' blocks in `gathered`
  std::vector<std::int32_t> columns;  // of the target, at which they begin
};

// Adds the kernel "copy_into_slices" and gives its number. All workgroups are resident together, so each has
// its part of what the framework's copy reaches.
std::int32_t add_slice_copy(ScheduleBuilder& builder, const Machine& machine, const SliceCopy& copy);

}  // namespace tritax
