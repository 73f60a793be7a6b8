// How long a GEMM takes that g workgroups share by iterations, in four constants (arXiv:2301.03598 App. A.1):
//
//   time(g) = a + b·[peers(g) > 1] + c·iters(g) + d·(peers(g) − 1)
//   iters(g) = ceil(t·i / g)       iterations of a workgroup, of t tiles with i iterations each
//   peers(g) = ceil(i / iters(g))  workgroups of a tile
//
// a: launch, first misses and the last store; b: having partial sums at all; c: an iteration; d: reading and
// adding one peer's partial. They belong to a tile, a dtype and a machine, and are fitted to runs. They do
// not carry over: published for MI300X are a = 7.337, b = 3.01, c = 2.2935, d = 10.22 us (ROCm/rocm-libraries
// shared/origami streamk.cpp @f2f0767), while the three optima published for A100 ask for d/c of 7 to 10.
//
//   Example: one tile of 512 iterations with c = 1, b = 10, d = 8: 8 workgroups take 64 each and have 8
//   peers, 10 + 64 + 56 = 130; 16 take 10 + 32 + 120 = 162, 4 take 10 + 128 + 24 = 162. 8 are best.
#pragma once

#include <cstdint>
#include <span>

namespace tritax {

struct GridModel {
  double a = 0;  // all in ns
  double b = 0;
  double c = 0;
  double d = 0;

  // All arguments at least 1.
  static std::int64_t iterations_of(std::int64_t tiles, std::int64_t iterations, std::int64_t grid);
  static std::int64_t peers_of(std::int64_t tiles, std::int64_t iterations, std::int64_t grid);
  double time_ns(std::int64_t tiles, std::int64_t iterations, std::int64_t grid) const;
};

// The fastest grid of up to `most` workgroups; of equal ones the smallest.
std::int64_t best_grid(const GridModel& model, std::int64_t tiles, std::int64_t iterations,
                       std::int64_t most);

// A run, simulated or measured, of g workgroups that share all iterations.
struct GridRun {
  std::int64_t tiles = 0;
  std::int64_t iterations = 0;
  std::int64_t grid = 0;
  double time_ns = 0;  // positive
};

struct GridFit {
  GridModel model;
  double median_error = 0;  // of |model − run| / run
  double worst_error = 0;
};

// The constants with the least sum of squared relative errors. Throws UserError when the runs do not decide
// all four: that takes runs with and without peers, with different numbers of both, and of iterations.
GridFit fit_grid_model(std::span<const GridRun> runs);

}  // namespace tritax
