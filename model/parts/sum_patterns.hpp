// Patterns of a GEMM along a split K whose partial sums are added up by the owners of blocks of C, whether
// the sum then stays with its owner (reduce-scatter) or goes to all ranks (the two-shot all-reduce): bodies
// of schedules, which workloads name and finish. partial_sums.hpp has the words.
//
// With one rank all of them are their GEMM kernel alone.
#pragma once

#include "model/parts/partial_sums.hpp"

namespace tritax {

// GEMM kernel, then a kernel that sends and adds in the same stream.
//
//   GEMM, G workgroups:    for t in p', p'+G, …: matmul; store partial(t)
//   ADD, Gc workgroups:    pushed: for items of peers: copy -> slot of the owner; arrived[item] += 1 there
//                          pulled: exchange arrivals with the peers: all have their partial sums
//                          for own items: wait arrived; load partial; for peers: reduce slot, or
//                          partial there; store C
void add_bulk_synchronous(SumDraft& draft);

// The second of them alone, on summands that are there (PartialSums without a product). Pushed, a rank opens
// its slots at its start; pulled, the counterparts exchange arrivals at the start, for all have their
// summands, and at the end, for all have been read.
void add_direct(SumDraft& draft);

// The same kernels on two streams; locks[t] within the GPU, one arrival a pushed item or a pulled tile.
void add_producer_consumer(SumDraft& draft);

// The same roles in one kernel, by the workgroup number after the remap; registers and LDS of the worse one.
void add_workgroup_specialised(SumDraft& draft);

// One kernel, tiles cut at the borders of blocks, one-shot:
//
//   for tiles of peers: matmul; store -> slot of the owner; arrived[t] += 1 there
//   for own tiles:      matmul; wait arrived[t]; for peers: reduce slot; store C
//
// Nobody waits before all that others wait for is on its way; partial sums never go through own memory.
void add_fused_slots(SumDraft& draft);

// One kernel, tiles cut at the borders of blocks; every tile travels once around all ranks, each of which
// adds its product:
//
//   for steps s in 0..W-1:  for tiles of the block that is W-1-s ranks before its owner:
//                             matmul; s > 0: wait arrived[t]; reduce incoming(t)
//                             s < W-1: store -> incoming(t) of the next rank; arrived[t] += 1 there
//                             s = W-1: the block is the own one: store C
//
// With `rings` tile t travels by stride number t mod rings of those that have no divisor in common with W, so
// that more links of a mesh carry.
void add_ring(SumDraft& draft);

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
