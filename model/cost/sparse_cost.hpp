// Cost law of `sparse_product`: what rows of A·x take one workgroup alone on its share of a compute unit, and
// what they ask of the memories.
//
// With s the steps of its longest wave and n those of all (lane_steps.hpp), c the clocks of a step, U = 4
// steps under way at a time, as compilers unroll loops of unknown length (CUDA C++ Programming Guide,
// `#pragma unroll`; four is what nvcc does by itself), w the waits of the longest wave for LDS or shuffles, e
// shuffles and accesses to LDS of all waves, and r workgroups on the compute unit
//
//   chain = t_first + ceil(s / U)·(t_stream + t_x) + w·t_lds + what a search finds in memory first
//   issue = max(s·c, n·c·r / simds) / clock, with what is issued besides steps
//   lds   = r·e·4·W / (128·clock)
//   lines = r·lookups / clock
//   port  = r·bytes / (cu_l2_bytes_per_clk·clock)
//   alone = max(chain, issue, lds, lines, port)
//
// t_stream is the latency of memory with the probability that some lane of the wave begins a new sector in U
// steps, else that of L1; t_x that of the slowest of W·U elements of x: from memory with probability
// 1 - (1 - m)^(W·U), where m of the elements miss the caches, else from the L2.
//
// Lines. An L1 looks up one line of 128 bytes a clock, whoever of a wave asks for it (Nsight Compute,
// Profiling Guide: a wavefront a cycle). Lanes side by side in memory share a line; lanes that each walk
// along l elements of their own, of e bytes, take min(1, l·e/128) lookups for each of them. Of x it is the
// sectors that the workgroup asks for, by nonzero, and at least one for a whole wave.
//
// Bytes. Values, columns and offsets come from memory once. Where lanes walk along rows of their own, each
// batch of U steps asks for the sector of each lane again; of what was asked for before, the L2 has lost the
// share by which the lines of all resident lanes exceed it: min(128, l·e) bytes of values and min(128, l·4)
// of columns a lane, as a line of 128 bytes has one tag for its four sectors (NVIDIA's developer forum,
// thread 290065). Machine files know no size of an L1: it is taken to hold a batch, and of x what a workgroup
// has asked for.
//
// x. A workgroup asks once for each sector of x that its nonzeros need. The L2 of its die has it if no more
// came into that L2 since the last workgroup there asked for it than it holds (LRU stack distance, in the
// order of dispatch), and so for the last-level cache. Caches begin cold.
//
// Not modelled: banks of L1 and LDS, pages of memory, values that are still in a cache from the product
// before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// Of L1 and of LDS, in clocks: 29 to 33 on H100 (arXiv:2402.13499 table 4), 28 on V100 (arXiv:1804.06826).
inline constexpr double kLdsLatencyClk = 30;
// What an LDS gives and takes a clock: 32 banks of 4 bytes (CUDA C++ Programming Guide, shared memory; CDNA 3
// ISA §2).
inline constexpr double kLdsBytesPerClk = 128;

struct SparseCost {
  double alone_ns = 0;
  double bytes = 0;      // asked of the L2
  double llc_bytes = 0;  // that missed it
  double hbm_bytes = 0;  // from memory
  double x_bytes = 0;    // of these asked for x …
  double x_llc_bytes = 0;
  double x_hbm_bytes = 0;
};

// Workgroups of a kernel that a compute unit of the GPU has at once, no more than it gets.
std::int32_t workgroups_on_unit(const Gpu& gpu, const Kernel& kernel);

// Of all sparse_products of a schedule. The schedule is sound.
class SparseCosts {
 public:
  SparseCosts(const Schedule& schedule, const Gpu& gpu);

  const SparseCost& of(std::uint32_t op) const { return costs_[place_of_[op]]; }

 private:
  std::vector<std::uint32_t> place_of_;  // by operation; empty without such operations
  std::vector<SparseCost> costs_;
};

}  // namespace tritax
