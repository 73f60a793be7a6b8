// Counts the work of a workgroup's waves for one `sparse_product`, for the law of sparse_cost.hpp: steps,
// further instructions, and waits for LDS or other waves.
//
// Lanes. LaneSharing distributes the nonzeros of a range to T lanes in waves of W lanes. A wave continues
// until its last lane is done. So a wave takes
//
//   row     Σ over rounds of T rows: the most nonzeros of a row among its W
//   vector  Σ over rounds of T/L rows: the most of ceil(length / L) among its W/L
//   group   Σ over blocks of W rows: the most of ceil(nonzeros of L rows / L) among its W/L, in whole batches
//   even    ceil((rows + nonzeros) / T)
//
// steps (loops, arXiv:2301.04792 §5). A batch of U steps is in flight at a time. A wave also has these
// accesses, one after the other, each with the latency of LDS:
//
//   vector  log2 L shuffles per round
//   group   per batch in which a row begins: one shuffle or reduction over the wave to find where rows begin,
//           a scan by segments (log2 L), one step that moves the sums to their rows. A row that continues
//           over batches without a begin: log2 L at its end. The waves of a group have even shares of its
//           nonzeros, and add up common rows after a barrier
//   even    a search of 2·log2(rows + nonzeros) probes, of LDS or of memory; per step the ends of rows that
//           any of its lanes reaches, side by side; log2 W + 1 shuffles and a barrier at the end
//
// LDS adds up nothing. A shuffle takes the path of an LDS access: it has its latency (Wilt, The CUDA
// Handbook, §8.6; AMD's ds_bpermute is an LDS instruction, CDNA 3 ISA §11) and its 128 bytes per clock and
// compute unit (32 lanes per clock: CUDA C++ Programming Guide, arithmetic throughput, "warp shuffle"; "warp
// reduce" 16).
#pragma once

#include <cstdint>

#include "model/schedule/schedule.hpp"

namespace tritax {

// Bytes that caches fetch at a time (32-byte sectors: CUDA C++ Best Practices Guide, §Coalesced access).
inline constexpr double kMemorySectorBytes = 32;
// Bytes that an L1 looks up at a time.
inline constexpr double kMemoryLineBytes = 128;
// Bytes of a column index or an offset.
inline constexpr double kIndexBytes = 4;
// Steps of a lane in flight.
inline constexpr double kStepsUnderWay = 4;
// Instructions per step: column, value, element of x, multiply-add; address, count, compare and branch.
inline constexpr double kStepInstructions = 8;

// Sums over all waves of a workgroup, and values of its longest wave.
struct LaneSteps {
  double longest = 0;       // steps of the longest wave
  double all = 0;           // steps of all waves
  double active = 1;        // lanes that have work in the mean step of the longest wave
  double instructions = 0;  // per step
  double more_longest = 0;  // further instructions
  double more_all = 0;
  double waits = 0;  // waits of the longest wave for LDS, L1 or a shuffle, in sequence
  double cold = 0;   // waits of the longest wave for memory: lines of row ends that a search reaches first
  double exchanges = 0;  // shuffles and accesses to LDS of all waves
  double asked = 0;      // bytes of values and columns that L1 requests from L2
  double lookups = 0;    // lookups of L1 lines for these bytes
};

// `element`: bytes of a value. `staged`: LDS holds the ends of all rows, which matters for even shares.
LaneSteps lane_steps(const SparseMatrix& matrix, const Op& op, std::int32_t threads,
                     std::int32_t lanes_per_wave, double element, bool staged);

}  // namespace tritax
