// How a vendor's collective library goes over several nodes.
//
// It joins the GPUs of all nodes by rings, one or more through every NIC, or, for an all-reduce, by two trees
// over the nodes with a chain through the GPUs of each (NCCL and RCCL), and takes whichever is faster by its
// own model of steps and bytes; so does this. Of W GPUs in N nodes, with blocks of b bytes:
//
//          steps from GPU to GPU    of which between nodes   a GPU passes on     held to the NICs of a node
//   ring   W-1, all-reduce 2(W-1)   N-1, all-reduce 2(N-1)   (W-1)·b, 2(W-1)·b   all that they send
//   trees  2(W/N-1) + 2·log2 N      2·log2 N                 2(W-1)·b            0.92 of that
//
// Trees over two nodes are held to nothing: one of them sends up and the other down.
//
// A ring enters and leaves a node once, with all bytes that it carries: GPUs pass on no more together than
// the NICs of their node do, which carry the flags of a protocol with flags in the words of the data as well.
// The time before the first byte is that of a node, with its steps, and for each further step one of the
// protocol for small messages, or, where the library has none, of a flag; between nodes the latency of the
// network more.
// Source: NVIDIA/nccl @5067397 src/graph/tuning.cc (nsteps, nInterSteps, log2i(nNodes), bwIntra of two nodes,
// .92 of trees), the same in ROCm/rccl @0cbce2a.
//
// Example: 2 nodes of 2 GPUs, a step of 1 us, 2 us of network: beside one node's two steps an all-reduce
// takes 8 us around the ring (of 6 steps 4 are further ones and 2 between nodes: 4·1 + 2·2 us) and 6 us by
// trees (2·1 + 2·2 us).
#pragma once

#include <cstdint>

#include "model/cost/collective_cost.hpp"
#include "model/machine/machine.hpp"

namespace tritax {

// Whole nodes of at least two GPUs each, more than one: only then there is something to do within a node
// first. Ranks fill the nodes in order.
struct NodeGrid {
  int nodes = 1;
  int gpus = 1;  // of a node

  bool several() const { return nodes > 1; }
  int node_of(int rank) const { return rank / gpus; }
  int local_of(int rank) const { return rank % gpus; }
  int rank_of(int node, int local) const { return node % nodes * gpus + local % gpus; }
};
NodeGrid node_grid(const Machine& machine, int ranks);

// As collective_protocol(), of several nodes: `bytes` is what a GPU passes on in all, and the channel's rate
// is no more than its part of what holds the rings or trees back. Throws nothing.
CollectiveProtocol protocol_of_nodes(const Machine& machine, const NodeGrid& grid, double bytes, int channels,
                                     bool all_reduce);

}  // namespace tritax
