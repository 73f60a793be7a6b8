// Small all-reduces and all-to-alls of a vendor's collective library over a full mesh: all pairs exchange at
// once, with flags in the words of the data (NCCL's protocol LL: 8-byte words of 4 B data and 4 B flag,
// arXiv:2507.04786 §II).
//
//   all-reduce, a channel, all resident; its part of every block of the own matrix:
//     TO A PEER, a workgroup each:  copy the part of its block -> slot there; arrived += 1 there
//                                   wait summed; copy the own sum -> there; done += 1 there
//     ADD, a workgroup:             load the own block; for peers: wait arrived, reduce their slot;
//                                   store the sum; summed += 1; wait for the done of all peers
//   all-to-all, a channel, all resident; its part of every block:
//     TO A PEER, a workgroup each:  copy the part of its block -> its place there; arrived += 1 there;
//                                   wait for the arrived of the peer
//     HERE, a workgroup:            copy the part of the own block
//
// These are the algorithms of RCCL for 8 GPUs (ROCm/rccl tools/msccl-algorithms,
// allreduce-allpairs-8n-ll-32tb.xml and -64tb.xml: 4 channels, and 8 from 80 KiB on, up to 1 MiB;
// alltoall-8n-0-9kb.xml, -9kb-190kb.xml and -190kb-512kb.xml: 1, 2 and 4 channels; sizes are all bytes of a
// GPU). No peer waits for another peer, and a channel without data raises no flag. Where a machine file has
// measured times of its library's protocol for small messages, those times hold instead
// (collective_cost.hpp).
//
// Small all-reduces of serving engines are of the same kind: workgroups read and write over the links that
// join all GPUs of a node, without the library's set-up (form custom-graph; vllm-project/vllm
// csrc/custom_all_reduce.cuh: 36 workgroups, one shot or two; here two).
#pragma once

#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"

namespace tritax {

// Whether the library uses these algorithms for the all-reduce, or all-to-all.
bool takes_all_pairs(const Machine& machine, const LibraryReduce& plan);
bool takes_all_pairs(const Machine& machine, const LibraryAllToAll& exchange);

// Whether an engine's own kernel reduces a matrix of this size, instead of the library.
bool takes_custom(const LibraryReduce& plan);

// Add the kernel and give its number.
std::int32_t add_custom_reduce(ScheduleBuilder& builder, const Machine& machine, const LibraryReduce& plan);
std::int32_t add_all_pairs_reduce(ScheduleBuilder& builder, const Machine& machine,
                                  const LibraryReduce& plan);
std::int32_t add_all_pairs_exchange(ScheduleBuilder& builder, const Machine& machine,
                                    const LibraryAllToAll& exchange);

}  // namespace tritax
