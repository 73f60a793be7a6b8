// What the waves of a workgroup do for one `sparse_product`: steps, what else they issue, and how often they
// wait for LDS or each other, for the law of sparse_cost.hpp.
//
// Lanes. The nonzeros of a range fall to T lanes in waves of W as LaneSharing says. A wave goes on until its
// last lane is done, so it takes
//
//   row     Σ over rounds of T rows: the most nonzeros of a row among its W
//   vector  Σ over rounds of T/L rows: the most of ceil(length / L) among its W/L
//   group   Σ over blocks of W rows: the most of ceil(nonzeros of L rows / L) among its W/L, in whole batches
//   even    ceil((rows + nonzeros) / T)
//
// steps (loops, arXiv:2301.04792 §5), of which U are under way at a time, a batch. Besides, one after the
// other and as long as LDS takes each time:
//
//   vector  log2 L shuffles a round
//   group   for a batch in which a row begins: where rows begin (one shuffle or reduction over the wave), a
//           scan by segments (log2 L), the sums to their rows (one); where a row goes on over batches without
//           a beginning, log2 L at its end. Groups of several waves have even shares of their nonzeros, and
//           add up the rows that they share behind a barrier
//   even    a search of 2·log2(rows + nonzeros) probes, of LDS or of memory; at each step the ends of rows
//           that any of its lanes comes to, side by side; log2 W + 1 shuffles and a barrier at the end
//
// Nothing is added up in LDS. A shuffle takes the way of an LDS access: its latency (Wilt, The CUDA Handbook,
// §8.6; AMD's ds_bpermute is an LDS instruction, CDNA 3 ISA §11) and its 128 bytes a clock of a compute unit
// (32 lanes a clock: CUDA C++ Programming Guide, arithmetic throughput, "warp shuffle"; "warp reduce" 16).
#pragma once

#include <cstdint>

#include "model/schedule/schedule.hpp"

namespace tritax {

// Bytes that caches fetch at a time (32-byte sectors: CUDA C++ Best Practices Guide, §Coalesced access).
inline constexpr double kMemorySectorBytes = 32;
// What an L1 looks up at a time.
inline constexpr double kMemoryLineBytes = 128;
// Of a column or an offset.
inline constexpr double kIndexBytes = 4;
// Steps of a lane under way.
inline constexpr double kStepsUnderWay = 4;
// Instructions of a step: column, value, element of x, multiply-add; address, count, compare and branch.
inline constexpr double kStepInstructions = 8;

// Sums over the waves of a workgroup, and what its longest wave has.
struct LaneSteps {
  double longest = 0;       // of one wave
  double all = 0;           // of all waves together
  double active = 1;        // lanes that have work in the mean step of the longest wave
  double instructions = 0;  // of a step
  double more_longest = 0;  // instructions besides
  double more_all = 0;
  double waits = 0;      // of the longest wave for LDS, L1 or a shuffle, one after the other
  double cold = 0;       // likewise for memory: lines of row ends that a search comes to first
  double exchanges = 0;  // shuffles and accesses to LDS of all waves
  double asked = 0;      // bytes of values and columns that L1 asks of the L2
  double lookups = 0;    // of lines of L1 for these
};

// `element`: bytes of a value. `staged`: the ends of all rows lie in LDS, which counts where shares are even.
LaneSteps lane_steps(const SparseMatrix& matrix, const Op& op, std::int32_t threads,
                     std::int32_t lanes_per_wave, double element, bool staged);

}  // namespace tritax
