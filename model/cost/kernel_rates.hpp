// Rates and start times of kernels that stand for library kernels, on a machine.
//
//   start    time of the whole call before the first byte, less what the schedule itself does of it: its
//            flags, its ways between nodes, and with the protocol for small messages the turns of the peers
//   pace     of a channel: the protocol's, no more than its share of the rings that a mesh has or of the NICs
//            of a node; of an all-reduce of
//   c chunks (c+1)/2c of that, for both halves run side by side but
//            for the first chunk of one and the last of the other
//
// Times before the first byte come from whole calls with tiny messages and include their flags. On a switch
// these libraries use one ring (NCCL), on a full mesh several rings (RCCL); the time includes the ring's
// steps (model/cost/collective_cost.hpp, nodes_cost.hpp).
//
// A workgroup with routine `posts` loads a piece and posts the piece to all peers; the next iteration begins
// when its load has returned. An iteration takes a constant time for any bytes (Little's law), plus a time
// per peer:
//
//   rate = posted to all peers / (post_time + peers · post_peer_time), at most cu_remote_store_bandwidth
//
// Larger tiles are not faster, because they spill registers (ROCm/iris PR #475).
//
// A workgroup that stands for many small workgroups is limited by their dispatch: a die dispatches to its
// compute units in turn.
//
// GEMMs, collectives and attention are looked up in the machine's tables of measured calls. If a call took f
// times the time of the law, every part of its kernels takes f times as long: multiplying, waiting for
// operands, storing, sending, the start.
//
// Example: an all-reduce of two ranks whose protocol starts after 20 us, with two flags of 2 us and one
// chunk, waits 16 us and sends at the full pace; with four chunks it sends at 5/8 of the pace.
#pragma once

#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

struct KernelRates {
  double workgroup_gb_per_s = 0;     // limit of one workgroup; 0: as the machine file says
  double remote_store_gb_per_s = 0;  // the same for stores and copies to a peer
  double payload_share = 1;          // of bytes stored to peers, as Kernel::payload_share
  double matmul_share = 1;           // share of the matrix rate that its matmuls reach
  // f of a library's call (model/machine/library_table.hpp): the kernel waits for operands f times as long as
  // the law says, and loads memories, ports and links f times as much. The shares, the rates and the start
  // already contain f.
  double time_factor = 1;
  double start_ns = 0;  // before the first operation, beyond the machine's costs
};

// For a kernel that is not a library kernel, payload share and start are the fields of the kernel.
KernelRates kernel_rates(const Machine& machine, const Kernel& kernel);

// Factor on the gap before a kernel in a busy stream. The gap before the second kernel of a library's call is
// part of the call and of its measured time.
double gap_factor(const Machine& machine, const Kernel& kernel);

// Names of the tables of measured calls that change times of this schedule's kernels.
std::vector<std::string> tables_used(const Machine& machine, const Schedule& schedule);

// By kernel of the schedule.
std::vector<KernelRates> kernel_rates(const Machine& machine, const Schedule& schedule);

}  // namespace tritax
