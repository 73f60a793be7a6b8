// Models the time of a GEMM whose iterations g workgroups share, with four constants (arXiv:2301.03598 App.
// A.1):
//
//   time(g) = a + b·[peers(g) > 1] + c·iters(g) + d·(peers(g) − 1)
//   iters(g) = ceil(t·i / g)       iterations of a workgroup, of t tiles with i iterations each
//   peers(g) = ceil(i / iters(g))  workgroups of a tile
//
// a: launch, first misses and the last store; b: fixed cost of partial sums; c: one iteration; d: reading and
// adding the partial sum of one peer. The constants belong to one tile, dtype and machine, and are fitted to
// runs. The constants of one machine do not hold for another: published for MI300X are a = 7.337, b = 3.01, c
// = 2.2935, d = 10.22 us (ROCm/rocm-libraries shared/origami streamk.cpp @f2f0767), while the three optima
// published for A100 need d/c of 7 to 10.
//
//   Example: one tile of 512 iterations with c = 1, b = 10, d = 8: 8 workgroups run 64 iterations each, with
//   peers = 8: 10 + 64 + 56 = 130. 16 workgroups take 10 + 32 + 120 = 162, 4 take 10 + 128 + 24 = 162. 8 are
//   best.
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

// The fastest grid of up to `most` workgroups; the smallest of equally fast grids.
std::int64_t best_grid(const GridModel& model, std::int64_t tiles, std::int64_t iterations,
                       std::int64_t most);

// A simulated or measured run of g workgroups that share all iterations.
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

// The constants with the least sum of squared relative errors. Throws UserError if the runs do not determine
// all four constants: this needs runs with and without peers, and different numbers of peers and of
// iterations.
GridFit fit_grid_model(std::span<const GridRun> runs);

}  // namespace tritax
