// The reduce-scatter, the all-reduce and the broadcast of a vendor's collective library.
//
//   a channel, all resident; its part of every block of the own matrix:
//     SEND, a workgroup:  for chunks: for peers: copy chunk -> slot at the owner of the block;
//                         arrived += 1 there
//     ADD, a workgroup:   for chunks of the own block: load; for peers: wait for their chunk, reduce their
//                         slot; store the sum; all-reduce: summed += 1
//     PASS ON, another:   all-reduce: for chunks of own block: wait summed; for peers: copy the sum there;
//                         tell all peers, wait for all peers
//
// A channel with a single chunk has no PASS ON: ADD stores the sum to all ranks.
//
// In these libraries, warps of one kernel receive, add and send in one step of a pipeline (recvReduceSend of
// NCCL), so that adding takes no time of links. Both halves of an all-reduce run at once and share the pace
// of a channel, which is the pace of its copies.
//
// Over a switch these libraries use one ring (NCCL), over a full mesh several (RCCL). Either way every rank
// sends (W-1)/W of the matrix, and an all-reduce as much again, and no port carries more than in this
// schedule, where chunks go straight to their owners. Two things differ: the sequential steps, which the
// times before the first byte contain (model/cost/collective_cost.hpp), and the links of a mesh that rings
// cannot use. Channels begin at different peers. The pace of a channel's copies across links is the
// all-gather's, because both run the same protocol; the extra time of adding is time of memory. Sums are
// accumulated in fp32.
//
// Over several nodes sums take another way: library_nodes.hpp.
//
// The time of this kernel's flags is subtracted from the time of the whole call
// (model/cost/kernel_rates.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/values.hpp"

namespace tritax {

struct LibraryReduce {
  std::string kernel;  // name
  int rank = 0;
  int ranks = 1;
  bool everywhere = false;                       // all-reduce
  LibraryRoutine custom = LibraryRoutine::none;  // an engine's all-reduce instead of the library's
  std::int16_t own = -1;                         // buffer of the summands
  std::int16_t slots = -1;    // buffer of one slot per rank, as high as the widest block, one below the other
  std::int16_t result = -1;   // buffer of the sum
  std::int16_t arrived = -1;  // flags (channel, rank)
  std::int16_t done = -1;     // all-reduce: flags (channel, rank)
  std::int16_t summed = -1;   // all-reduce: flags (channel)
  std::int16_t passed = -1;   // all-reduce over several nodes: flags (channel, node)
  std::int16_t opened = -1;   // flags of runs without a host in between: no rank sends before all have begun
  std::vector<Rect> blocks;   // by rank, in `own`
  Rect place;                 // of the own block, in `result`
  std::int32_t slot_rows = 0;  // rows per slot
  double widest_bytes = 0;     // of the widest block, so that all ranks choose one protocol
};

// The kernel of a reduction; `flags` and `crossings` as in LibraryKernel.
Kernel reducing_kernel(const LibraryReduce& plan, std::int32_t channels, std::int32_t chunks, int flags,
                       int crossings = 0);

// Adds the flags of an all-reduce.
void add_all_reduce_flags(ScheduleBuilder& builder, const Machine& machine, LibraryReduce& plan);

// Number of chunks in which a channel adds up `bytes` of a block.
std::int32_t chunks_of_reduce(double bytes);

// Adds the kernel and returns its number; over several nodes the kernel of library_nodes.hpp.
std::int32_t add_library_reduce(ScheduleBuilder& builder, const Machine& machine, const LibraryReduce& plan);

// The broadcast of a vendor's collective library, in place: every rank ends with the data of the root.
//
//   root, a channel:    for chunks: for peers: copy chunk of the peer's part -> there;
//                       arrived[chunk] += 1 there
//   others, a channel:  for chunks of the own part: wait arrived; for peers but the root: copy chunk -> there
//   all:                tell all peers, wait for all peers
//
// Chunks do not follow a ring, but no port carries more than in rings: every byte leaves the root once, over
// all of its links, and every other rank passes on the part that it received first.
struct LibraryBroadcast {
  std::string kernel;  // name
  int rank = 0;
  int ranks = 1;
  int root = 0;
  std::int16_t data = -1;     // buffer that is sent whole
  Rect whole;                 // of `data`
  double bytes = 0;           // of `whole`
  std::int16_t arrived = -1;  // flags (channel, chunk); broadcast_flags() gives their number
  std::int16_t done = -1;     // flags (channel, rank)
};
std::int32_t add_library_broadcast(ScheduleBuilder& builder, const Machine& machine,
                                   const LibraryBroadcast& plan);
std::int32_t broadcast_flags(const Machine& machine, double bytes);

// A framework's copy of blocks of one matrix to contiguous places, because a collective scatters contiguous
// blocks. Adds the kernel "copy_into_blocks" and returns its number.
struct BlockCopy {
  int rank = 0;
  std::int16_t from = -1;
  std::int16_t to = -1;
  std::vector<Rect> blocks;  // in `from`
  std::vector<Rect> places;  // in `to`
  bool contiguous = false;   // whole rows to the same place: at the rate of memory
};
std::int32_t add_block_copy(ScheduleBuilder& builder, const Machine& machine, const BlockCopy& copy);

// Knob of collectives that frameworks also offer for a list of tensors, one per rank: the library works on
// one tensor, and the framework copies its blocks to or from the list.
inline constexpr std::string_view kListsKnob = "lists";
Spec lists_knob();

}  // namespace tritax
