// Cost law of `sparse_product`: the time of rows of A·x for one workgroup alone on its share of a compute
// unit, and the bytes that the rows request from the memories.
//
// Let s be the steps of the longest wave and n the steps of all waves (lane_steps.hpp), c the clocks per
// step, U = 4 the steps in flight at a time, as compilers unroll loops of unknown length (CUDA C++
// Programming Guide, `#pragma unroll`; nvcc unrolls by four), w the waits of the longest wave for LDS or
// shuffles, e the shuffles and accesses to LDS of all waves, and r the workgroups on the compute unit:
//
//   chain = t_first + ceil(s / U)·(t_stream + t_x) + w·t_lds + what a search finds in memory first
//   issue = max(s·c, n·c·r / simds) / clock, including instructions besides steps
//   lds   = r·e·4·W / (128·clock)
//   lines = r·lookups / clock
//   port  = r·bytes / (cu_l2_bytes_per_clk·clock)
//   alone = max(chain, issue, lds, lines, port)
//
// t_stream is the latency of memory with the probability that some lane of the wave begins a new sector in U
// steps, otherwise the latency of L1. t_x is the latency of the slowest of W·U elements of x: from memory
// with probability 1 - (1 - m)^(W·U), if a share m of the elements misses the caches, otherwise from the L2.
//
// Lines. An L1 looks up one line of 128 bytes per clock, for any lanes of a wave (Nsight Compute, Profiling
// Guide: one wavefront per cycle). Lanes side by side in memory share a line; lanes that each walk along l
// own elements of e bytes take min(1, l·e/128) lookups per element. For x the lookups per nonzero are the
// sectors that the workgroup requests, at least one per whole wave.
//
// Bytes. Values, columns and offsets come from memory once. Where lanes walk along rows of their own, each
// batch of U steps requests the sector of each lane again. The L2 has lost the share by which the lines of
// all resident lanes exceed its size: per lane min(128, l·e) bytes of values and min(128, l·4) bytes of
// columns, because a line of 128 bytes has one tag for its four sectors (NVIDIA's developer forum, thread
// 290065). Machine files have no size of an L1: the law assumes that an L1 holds a batch, and all x that a
// workgroup has requested.
//
// x. A workgroup requests each sector of x that its nonzeros need once. The L2 of its die has the sector if,
// since the last request of the sector on that die, no more bytes entered the L2 than it holds (LRU stack
// distance, in the order of dispatch). The same holds for the last-level cache. Caches begin cold.
//
// Not modelled: banks of L1 and LDS, pages of memory, values that remain in a cache from the previous
// product.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// Latency of L1 and of LDS, in clocks: 29 to 33 on H100 (arXiv:2402.13499 table 4), 28 on V100
// (arXiv:1804.06826).
inline constexpr double kLdsLatencyClk = 30;
// Bytes that an LDS moves per clock: 32 banks of 4 bytes (CUDA C++ Programming Guide, shared memory; CDNA 3
// ISA §2).
inline constexpr double kLdsBytesPerClk = 128;

struct SparseCost {
  double alone_ns = 0;
  double bytes = 0;      // requested from the L2
  double llc_bytes = 0;  // that missed the L2
  double hbm_bytes = 0;  // from memory
  double x_bytes = 0;    // of these, the bytes of x …
  double x_llc_bytes = 0;
  double x_hbm_bytes = 0;
};

// Workgroups of a kernel that a compute unit of the GPU runs at once, at most the number that it gets.
std::int32_t workgroups_on_unit(const Gpu& gpu, const Kernel& kernel);

// Costs of all sparse_products of a schedule. The schedule is sound.
class SparseCosts {
 public:
  SparseCosts(const Schedule& schedule, const Gpu& gpu);

  const SparseCost& of(std::uint32_t op) const { return costs_[place_of_[op]]; }

 private:
  std::vector<std::uint32_t> place_of_;  // by operation; empty without such operations
  std::vector<SparseCost> costs_;
};

}  // namespace tritax
