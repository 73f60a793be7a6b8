// How fast a kernel is that stands for one of a library, on a machine.
//
//   start    time of the whole call before the first byte, less what the schedule itself does of it: its
//            flags, its ways between nodes, and with the protocol for small messages the turns of the peers
//   pace     of a channel: the protocol's, no more than its share of the rings that a mesh has or of the NICs
//            of a node; of an all-reduce of
//   c chunks (c+1)/2c of that, for both halves run side by side but
//            for the first chunk of one and the last of the other
//
// Times before the first byte were taken from whole calls on messages of nearly nothing, whose flags are in
// them. Over a switch these libraries go around a ring (NCCL), over a full mesh around several (RCCL); their
// steps are in that time too (model/cost/collective_cost.hpp, nodes_cost.hpp).
//
// A workgroup that posts loads a piece and posts it to all peers; the next cannot begin before its load is
// back. It takes as long whatever it posts (Little's law), a little for each peer:
//
//   rate = posted to all peers / (post_time + peers · post_peer_time), at most cu_remote_store_bandwidth
//
// More is not faster: larger tiles spill registers (ROCm/iris PR #475).
//
// A workgroup that stands for many small ones moves no faster than those are dispatched: each of the units of
// a die gets one in turn.
//
// GEMMs and collectives are looked up in the tables of measured calls that the machine has. Where a call took
// f times what the law says, all that its kernels do takes f times as long: multiplying, waiting for
// operands, storing, sending, the start.
//
// Example: an all-reduce of two ranks whose protocol starts after 20 us, with two flags of 2 us and one
// chunk, waits 16 us and sends at the whole pace; with four chunks at 5/8 of it.
#pragma once

#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

struct KernelRates {
  double workgroup_gb_per_s = 0;     // of one workgroup, at most; 0: as the machine says
  double remote_store_gb_per_s = 0;  // same, while it stores or copies to a peer
  double payload_share = 1;          // of the bytes that it stores to peers, as Kernel::payload_share
  double matmul_share = 1;           // of the rate of the matrix cores that its matmuls reach
  // f of a library's call (model/machine/library_table.hpp): the kernel waits for operands f times as long as
  // the law says, and asks f times as much of memories, ports and links. The shares, the rates and the start
  // contain it already.
  double time_factor = 1;
  double start_ns = 0;  // before the first operation of what starts with it, beyond what the machine says
};

// Of a kernel that is no library's payload and start are the kernel's own.
KernelRates kernel_rates(const Machine& machine, const Kernel& kernel);

// Factor of the gap before a kernel in a busy stream. The gap before the second kernel of a library's call is
// part of the call, and so of its measured time.
double gap_factor(const Machine& machine, const Kernel& kernel);

// By kernel of the schedule.
std::vector<KernelRates> kernel_rates(const Machine& machine, const Schedule& schedule);

}  // namespace tritax
