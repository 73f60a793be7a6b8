// Costs of a vendor's collective library over several nodes.
//
// The library connects the GPUs of all nodes by rings, one or more through every NIC, or, for an all-reduce,
// by two trees over the nodes with a chain through the GPUs of each node (NCCL and RCCL). It chooses the
// faster by its own model of steps and bytes; this model does the same. For W GPUs in N nodes, with blocks of
// b bytes:
//
//          steps from GPU to GPU    of which between nodes   a GPU passes on     limit by the NICs of a node
//   ring   W-1, all-reduce 2(W-1)   N-1, all-reduce 2(N-1)   (W-1)·b, 2(W-1)·b   all their bytes
//   trees  2(W/N-1) + 2·log2 N      2·log2 N                 2(W-1)·b            0.92 of that
//
// The NICs do not limit trees over two nodes: one tree sends up and the other sends down.
//
// A ring enters and leaves a node once, with all its bytes: together the GPUs of a node pass on no more than
// its NICs. If the protocol has flags in the words of the data, the NICs carry these flags too. The time
// before the first byte is the time of one node, with its steps, plus for each further step a step of the
// protocol for small messages or, if the library has none, a flag; a step between nodes also has the latency
// of the network. Source: NVIDIA/nccl @5067397 src/graph/tuning.cc (nsteps, nInterSteps, log2i(nNodes),
// bwIntra of two nodes, .92 of trees), the same in ROCm/rccl @0cbce2a.
//
// Example: 2 nodes of 2 GPUs, a step of 1 us, network latency 2 us. Besides the two steps of one node, an
// all-reduce takes 8 us by the ring (4 of 6 steps are further steps and 2 are between nodes: 4·1 + 2·2 us)
// and 6 us by trees (2·1 + 2·2 us).
#pragma once

#include <cstdint>

#include "model/cost/collective_cost.hpp"
#include "model/machine/machine.hpp"

namespace tritax {

// More than one whole node of at least two GPUs each: only then a collective has a part within a node. Ranks
// fill the nodes in order.
struct NodeGrid {
  int nodes = 1;
  int gpus = 1;  // per node

  bool several() const { return nodes > 1; }
  int node_of(int rank) const { return rank / gpus; }
  int local_of(int rank) const { return rank % gpus; }
  int rank_of(int node, int local) const { return node % nodes * gpus + local % gpus; }
};
NodeGrid node_grid(const Machine& machine, int ranks);

// As collective_protocol(), for several nodes: `bytes` is the total that a GPU passes on, and the channel's
// rate is at most its part of the limit of the rings or trees. Throws nothing.
CollectiveProtocol protocol_of_nodes(const Machine& machine, const NodeGrid& grid, double bytes, int channels,
                                     bool all_reduce);

}  // namespace tritax
