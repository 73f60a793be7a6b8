// Patterns of a GEMM along a split K where owners of blocks of C add up the partial sums. The sum stays with
// its owner (reduce-scatter) or goes to all ranks (the two-shot all-reduce). These are bodies of schedules,
// which workloads name and finish. partial_sums.hpp explains the terms.
//
// With one rank, each of them is only its GEMM kernel.
#pragma once

#include <functional>

#include "model/parts/partial_sums.hpp"

namespace tritax {

// GEMM kernel, then a kernel that sends and adds, in the same stream.
//
//   GEMM, G workgroups:    for t in p', p'+G, …: matmul; store partial(t)
//   ADD, Gc workgroups:    pushed: for items of peers: copy -> slot of the owner; arrived[item] += 1 there
//                          pulled: exchange arrivals with the peers: all have their partial sums
//                          for own items: wait arrived; load partial; for peers: reduce slot, or
//                          partial there; store C
void add_bulk_synchronous(SumDraft& draft);

// The ADD kernel alone, on summands that exist already (PartialSums without a product). With push, a rank
// opens its slots at its start. With pull, counterparts exchange arrivals at the start (all have their
// summands) and at the end (all have been read). `behind`: adds a kernel of a rank that follows in the same
// stream, and returns its number.
void add_direct(SumDraft& draft, const std::function<std::int32_t(int rank)>& behind = {});

// The same kernels on two streams; locks[t] within the GPU, one arrival per pushed item or per pulled tile.
void add_producer_consumer(SumDraft& draft);

// The same roles in one kernel, by the workgroup number after the remap; registers and LDS of the larger
// role.
void add_workgroup_specialised(SumDraft& draft);

// One kernel, tiles cut at the borders of blocks, one-shot:
//
//   for tiles of peers: matmul; store -> slot of the owner; arrived[t] += 1 there
//   for own tiles:      matmul; wait arrived[t]; for peers: reduce slot; store C
//
// No workgroup waits before it has sent all data that others wait for; partial sums never go through own
// memory.
void add_fused_slots(SumDraft& draft);

// One kernel, with tiles cut at the borders of blocks. Every tile travels once around all ranks, and each
// rank adds its product:
//
//   for steps s in 0..W-1:  for tiles of the block that is W-1-s ranks before its owner:
//                             matmul; s > 0: wait arrived[t]; reduce incoming(t)
//                             s < W-1: store -> incoming(t) of the next rank; arrived[t] += 1 there
//                             s = W-1: the block is the own one: store C
//
// With `rings` rings, tile t travels by stride number t mod rings, of the strides that have no divisor in
// common with W; so a mesh uses more links.
void add_ring(SumDraft& draft);

// The sum lies in memory on every rank, and all ranks add their products onto it:
//
//   G workgroups:  for t in p', p'+G, …: store zeros -> own sum(t)
//                  exchange arrivals with the counterparts of all peers: they have the same tiles
//                  for t in p', p'+G, …:
//                    atomics:  matmul; for ranks: atomic add onto sum(t) there
//                    turns:    for ranks: wait for the own turn at sum(t) there; matmul; reduce sum(t);
//                                         store sum(t); turn of the next rank
//                  exchange arrivals
//
// Atomics (ROCm/iris ex. 08 and iris/ccl, variant atomic) leave the order of the summands free. No GPU adds
// fp8 atomically, so sums of fp8 are fp32, and a second kernel rounds them.
//
// In the kernel with turns (ROCm/iris iris/ccl, variant spinlock) the workgroup that comes first takes a lock
// beside each tile of a sum. Schedules have no operation that repeats a compare-and-swap on a flag of another
// rank until it succeeds. So the order of the turns is fixed, one that the lock allows too: ranks come to a
// sum in the order in which the sum is on their way.
//
// Each addition rounds to the dtype of the sum. Without a product the own summand is loaded instead; with
// turns, for each rank again.
enum class Onto : std::uint8_t { atomics, turns };
void add_onto_sums(SumDraft& draft, Onto onto);

// Copy engines move partial sums, piece by piece:
//
//   stream 0:      for pieces i: GEMM of piece i of all peers' blocks; record event i;  GEMM of the own block
//   stream 1 + p:  for pieces i: wait for event i; copy the piece -> slot at p; a kernel of one workgroup:
//                  arrived[own, i] += 1 there
//   stream 0:      ADD as above, waits for all pieces of all peers
//
// Throws UserError if the machine does not describe copy engines.
void add_copy_engine(SumDraft& draft);

}  // namespace tritax
