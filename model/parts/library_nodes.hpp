// The kernels of a vendor's collective library over several nodes. GPU l of node n is (n, l); there are N
// nodes of G GPUs each. The own GPU is (n, l); j are the other GPUs of a node.
//
//   all-gather, a channel:  RAILS   for the other nodes m: copy chunk of the own block -> (m, l);
//                                   passed[n] += 1 there
//                           SPREAD  for the own node: copy chunk of the own block -> (n, j);
//                                   for nodes m, as they come: wait passed[m]; copy chunk of the block of
//                                   (m, l) -> (n, j)
//   reduce-scatter:         SEND    for nodes m, the own last: for the own node: copy chunk of the block of
//                                   (m, j) -> slot (m, l) of (n, j); arrived += 1 there
//                           MERGE   for the other nodes m: load the chunk of the block of (m, l); for the own
//                                   node: wait, reduce its slot; store -> slot (n, l) of (m, l); arrived += 1
//                           ADD     load the chunk of the own block; for the own node and for (m, l): wait,
//                                   reduce their slot; store the sum
//   all-reduce:             the same, and then RAILS and SPREAD with the sums
//   all-to-all, where blocks are handed over (NCCL's PXN):
//                           HAND    for other nodes m: for the own node: copy chunk of block for (m, j) ->
//                                   slot (m, l) of (n, j); handed += 1 there
//                           SEND    copy the blocks for the own node; for other nodes m: for the own node:
//                                   wait handed; copy chunk for (m, l), the own or from its slot -> (m, l)
//
// Every GPU passes on W-1 blocks (an all-reduce twice as many), as in a ring through all GPUs. Traffic of a
// NIC goes to the same NIC of another node, on its rail. As on one node, chunks do not follow a ring: the
// delays and steps of a ring are in the pace of a channel and in the time before the first byte
// (model/cost/nodes_cost.hpp). A NIC carries (N-1)·b here and (N-1/G)·b in a ring, so that other traffic on
// the NIC is slowed down a little less.
//
// NVIDIA's library hands blocks of an all-to-all over to the GPU of its node whose NIC is on the rail of the
// target (PXN: NCCL 2.12 release notes; NVIDIA/nccl src/graph/paths.cc, PXN_DISABLE 0; ROCm/rccl
// src/graph/paths.cc has PXN_DISABLE 1). Here blocks are handed over on rails with NVIDIA GPUs, and nowhere
// else.
#pragma once

#include <cstdint>
#include <functional>

#include "model/cost/nodes_cost.hpp"
#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"

namespace tritax {

// Each adds the kernel and returns its number; requires several nodes in node_grid().
std::int32_t add_gather_over_nodes(ScheduleBuilder& builder, const Machine& machine,
                                   const LibraryGather& gather,
                                   const std::function<void(std::int32_t channel)>& end_channel);
std::int32_t add_reduce_over_nodes(ScheduleBuilder& builder, const Machine& machine,
                                   const LibraryReduce& plan);
std::int32_t add_exchange_over_nodes(ScheduleBuilder& builder, const Machine& machine,
                                     const LibraryAllToAll& exchange);

// Whether the library hands blocks over to the GPU on the rail of their target.
bool hands_blocks_over(const Machine& machine, int ranks);

}  // namespace tritax
