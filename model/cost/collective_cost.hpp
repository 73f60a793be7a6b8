// Costs of moving a message with a vendor's collective library.
//
// The library has one protocol that fills the links, and one for small messages, which starts sooner and
// carries flags with the data (NCCL and RCCL: Simple and LL). The library chooses the faster protocol by its
// own model of both; for sends and receives it chooses by size. This model does the same. A small message
// goes from GPU to GPU around a ring, in one step less than the number of GPUs; each step has its latency.
#pragma once

#include "model/machine/machine.hpp"

namespace tritax {

struct CollectiveProtocol {
  double start_ns = 0;          // before the first byte moves
  double channel_gb_per_s = 0;  // one channel, to all its peers together
  double payload_share = 1;     // of the bytes on links (Kernel::payload_share)
};

// Payload share of LL: words of 8 bytes have 4 bytes of data and 4 bytes of flag (arXiv:2507.04786 §II).
inline constexpr double kLowLatencyPayload = 0.5;

// Largest bytes of a matrix for which serving engines use their own all-reduce instead of the collective
// library's (vllm-project/vllm vllm/distributed/device_communicators/custom_all_reduce.py, max_size of 8192
// KiB).
inline constexpr double kMostCustomBytes = 8 << 20;

// Number of chunks into which a schedule cuts the bytes that a channel sends to one peer: enough to follow
// the channel's pace, few enough for a fast simulation, and none so small that the latency of a copy, which
// the library hides, matters.
std::int32_t chunks_of_channel(double bytes);

// Of the links that each of `ranks` fully connected GPUs has to the others, how many a library's rings can
// use in each direction: as many as there are rings, each through all GPUs, that share no link. One less than
// there are GPUs, but 2 of 3 links of four GPUs and 4 of 5 of six (T. Tillson, A Hamiltonian decomposition of
// K*_2m, 2m ≥ 8, J. Combinatorial Theory B 29, 1980: the complete digraph decomposes into Hamiltonian cycles
// for all orders but 4 and 6).
// All cycles together load the links of four GPUs evenly, but RCCL is not seen to do so: 114 GB/s of an
// all-gather on four MI355X (ROCm/iris analysis/cu_sweep_results.md) are those of 2 links.
int ring_links(int ranks);

// The protocol for `bytes` that each of `ranks` GPUs sends over `channels`, in `steps` from GPU to GPU; 0:
// number of GPUs - 1. An all-reduce has twice as many steps. Throws nothing.
CollectiveProtocol collective_protocol(const LibraryCosts& library, int ranks, double bytes, int channels,
                                       int steps = 0);

// The protocol of sends and receives; the widest has `bytes`. The choice depends on size alone: the protocol
// for small messages is used if the part of a channel has at most 16 KiB. A send gets a further channel only
// per 64 KiB, so a larger send never uses this protocol (NVIDIA/nccl @5067397 src/enqueue.cc, addP2pToPlan:
// NCCL_P2P_LL_THRESHOLD, minPartSize; ROCm/rccl @0cbce2a src/enqueue.cc, the same threshold). Throws nothing.
CollectiveProtocol send_protocol(const LibraryCosts& library, double bytes);

}  // namespace tritax
