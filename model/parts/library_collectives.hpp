// The reduce-scatter, the all-reduce and the broadcast of a vendor's collective library.
//
//   a channel, all resident; its part of every block of the own matrix:
//     SEND, a workgroup:  for chunks: for peers: copy chunk -> slot at the owner of the block; arrived += 1
//     there ADD, a workgroup:   for chunks of the own block: load; for peers: wait for what they sent, reduce
//     their
//                                                      slot; store the sum; all-reduce: summed += 1
//     PASS ON, another:   all-reduce: for chunks of the own block: wait summed; for peers: copy the sum
//     there;
//                                     tell all peers, wait for all peers
//
// Of a single chunk nothing is passed on beside what is added: who adds it stores it to all.
//
// The kernels of these libraries have warps for each, which receive, add and send in one step of a pipeline
// (recvReduceSend of NCCL): what is added costs no time of links. Both halves of an all-reduce run at once
// then and share the pace of a channel, which is that of its copies.
//
// Over a switch these libraries go around a ring (NCCL) and over a full mesh around several (RCCL). Either
// way every rank sends (W-1)/W of the matrix, and an all-reduce as much again, and no port carries more than
// here, where chunks go straight to their owners; what differs are the steps one after the other, which the
// times before the first byte hold (model/cost/collective_cost.hpp), and the links of a mesh that rings
// cannot use. Channels begin at different peers. The pace of a channel, that of its copies across links, is
// the all-gather's: both run the same protocol, and what adding takes more is memory's. Sums are in the
// accumulator, in fp32.
//
// Over several nodes sums go another way: library_nodes.hpp.
//
// What the flags of this kernel take comes off the time of the whole call (model/cost/kernel_rates.hpp).
#pragma once

#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

struct LibraryReduce {
  std::string kernel;  // name
  int rank = 0;
  int ranks = 1;
  bool everywhere = false;                       // all-reduce
  LibraryRoutine custom = LibraryRoutine::none;  // an engine's all-reduce instead of the library's
  std::int16_t own = -1;                         // buffer of the matrix that is added up
  std::int16_t slots = -1;                       // one of each rank, of the widest block, one below the other
  std::int16_t result = -1;                      // of the sum
  std::int16_t arrived = -1;                     // flags (channel, rank)
  std::int16_t done = -1;                        // the same of an all-reduce
  std::int16_t summed = -1;                      // flags (channel) of an all-reduce
  std::int16_t passed = -1;                      // the same over several nodes: flags (channel, node)
  std::int16_t opened = -1;    // the same of runs that no host keeps apart: nobody sends before all are there
  std::vector<Rect> blocks;    // of the ranks, in `own`
  Rect place;                  // of the own block in `result`
  std::int32_t slot_rows = 0;  // of a slot
  double widest_bytes = 0;     // of the widest block: all ranks take one protocol
};

// Its kernel; `flags` and `crossings` as LibraryKernel has them.
Kernel reducing_kernel(const LibraryReduce& plan, std::int32_t channels, std::int32_t chunks, int flags,
                       int crossings = 0);

// Adds the flags of an all-reduce.
void add_all_reduce_flags(ScheduleBuilder& builder, const Machine& machine, LibraryReduce& plan);

// In how many chunks a channel adds up so many bytes of a block.
std::int32_t chunks_of_reduce(double bytes);

// Adds the kernel and gives its number; over several nodes that of library_nodes.hpp.
std::int32_t add_library_reduce(ScheduleBuilder& builder, const Machine& machine, const LibraryReduce& plan);

// The broadcast of a vendor's collective library, in place: every rank ends with what the root has.
//
//   root, a channel:    for chunks: for peers: copy chunk of the peer's part -> there; arrived[chunk] += 1
//   there others, a channel:  for chunks of the own part: wait arrived; for peers but the root: copy chunk ->
//   there all:                tell all peers, wait for all peers
//
// As above, chunks take the way of no ring, but no port carries more than in rings: what the root has leaves
// it once, over all of its links, and everybody else passes on what it got first.
struct LibraryBroadcast {
  std::string kernel;  // name
  int rank = 0;
  int ranks = 1;
  int root = 0;
  std::int16_t data = -1;     // buffer, all of which is sent
  Rect whole;                 // of it
  double bytes = 0;           // of that
  std::int16_t arrived = -1;  // flags (channel, chunk): broadcast_flags() of them
  std::int16_t done = -1;     // flags (channel, rank)
};
std::int32_t add_library_broadcast(ScheduleBuilder& builder, const Machine& machine,
                                   const LibraryBroadcast& plan);
std::int32_t broadcast_flags(const Machine& machine, double bytes);

// A framework's copy of blocks of one matrix to places where each lies for itself, for a collective scatters
// contiguous blocks. Adds the kernel "copy_into_blocks" and gives its number.
struct BlockCopy {
  int rank = 0;
  std::int16_t from = -1;
  std::int16_t to = -1;
  std::vector<Rect> blocks;  // in `from`
  std::vector<Rect> places;  // in `to`
};
std::int32_t add_block_copy(ScheduleBuilder& builder, const Machine& machine, const BlockCopy& copy);

}  // namespace tritax
