// Small all-reduces of a vendor's collective library over a full mesh: all pairs at once, flags in the words
// of the data (NCCL's protocol LL: 8-byte words of 4 B data and 4 B flag, arXiv:2507.04786 §II).
//
//   a channel, all resident; its part of every block of the own matrix:
//     TO A PEER, a workgroup each:  copy the part of its block -> slot there; arrived += 1 there
//                                   wait summed; copy the own sum -> there; done += 1 there
//     ADD, a workgroup:             load the own block; for peers: wait arrived, reduce their slot; store the
//                                   sum; summed += 1; wait for the done of all peers
//
// These are the algorithms that RCCL has for 8 GPUs (ROCm/rccl tools/msccl-algorithms,
// allreduce-allpairs-8n-ll-32tb.xml and -64tb.xml: 4 channels, and 8 from 80 KiB on, up to 1 MiB). Nobody is
// served after somebody else, and a channel that has nothing to send raises no flag. Where a machine has
// measured times of its library's protocol for small messages, those hold instead (collective_cost.hpp).
#pragma once

#include "model/parts/library_collectives.hpp"

namespace tritax {

// Whether the library takes them for such an all-reduce.
bool takes_all_pairs(const Machine& machine, const LibraryReduce& plan);

// Adds the kernel and gives its number.
std::int32_t add_all_pairs_reduce(ScheduleBuilder& builder, const Machine& machine,
                                  const LibraryReduce& plan);

}  // namespace tritax
