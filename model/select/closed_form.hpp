// Computes the time of a GEMM on one GPU from its tile and its decomposition in a closed form: a few hundred
// operations, no events. It ranks thousands of candidates in microseconds, like Origami (ROCm/rocm-libraries
// shared/origami, arXiv:2512.04226).
//
//   kernel  = start + shared + whole
//   shared  = step(sharers)·S + prologue·parts + seam        of the tiles that several workgroups share
//   whole   = sum over rounds of step(w)·S + (prologue + store) / hidden
//   step(w) = max(compute, latency / (stages − 1), B·w / L2, (1 − h₂)·B·w / LLC, (1 − h₃)(1 − h₂)·B·w / HBM)
//
// with w workgroups that run at once, B operand bytes per step of one workgroup, and S steps. compute is the
// law of model/cost/matmul_cost.hpp; latency is the mean latency of the levels that serve a step, weighted by
// their hits. Workgroups that run at once form a block of a × b tiles in the grid order, so that
//
//   h = 1 − (a·rows + b·columns) / (w·(rows + columns))       per die for the L2, per GPU behind it
//
// If both operands fit in a cache, each is missed only once. Workgroups with shares are at different depths
// of K: they hit a cache only by the part of all shared operands that it holds. A second workgroup of a
// compute unit hides prologue and store of the first (`hidden`: the number of workgroups on the unit). A seam
// is storing a partial sum (always fp32, or fp64) and adding the partial sum of each peer; if shares are
// shorter than a tile, all shares end together, and the owner also waits for the last flag. No constant is
// fitted.
//
//   Example: 2048³ in fp16, tiles of 128×128×32 on 108 units at 1 GHz, 2048 flop a cycle at 0.95: a step of
//   32 is 539 ns; 256 tiles of 64 steps in 3 rounds are 103 µs, 256/108 of a round evenly shared 82 µs.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/cost/grid_model.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/machine/machine.hpp"
#include "model/parts/decomposition.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// The elements of a product.
struct Element {
  std::string_view name;
  int bytes = 2;
  int sum_bytes = 4;  // of a partial sum
  MatrixRate rate;
  DType dtype = DType::fp16;
};

Element element_of(const Gpu& gpu, DType dtype);

struct GemmSize {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

class ClosedForm {
 public:
  // A kernel with `tile` and `occupancy` workgroups per compute unit; group_m as the knob of that name.
  ClosedForm(const Machine& machine, const Element& element, const MatmulTile& tile, int occupancy,
             std::int32_t group_m);

  TiledGemm tiled(const GemmSize& size) const {
    return tiled_gemm(size.m, size.n, size.k, tile_.m, tile_.n, tile_.k);
  }

  // Time of the kernel from its first workgroup to its end. `split` belongs to tiled(size).
  double kernel_ns(const GemmSize& size, const Decomposition& split) const;

  // The same for one of many equal kernels in a stream.
  double in_stream_ns(const GemmSize& size, const Decomposition& split) const {
    return gap_ns_ + kernel_ns(size, split);
  }

  // Constants of the grid model for workgroups that share all iterations.
  GridModel grid_model() const;

  // The Stream-K decomposition of arXiv:2301.03598: the tiles of the last round and of one full round are
  // shared, or those of the last round alone if there is only one full round. A GEMM that does not fill a
  // round is shared by the best number of workgroups of the grid model.
  Decomposition stream_k(const GemmSize& size) const;

  // An iteration of a tile alone on its unit, at full rate, with warm caches.
  double iteration_ns() const { return compute_ns_ * tile_.k / depth_; }

 private:
  // A grid of tiles of average size.
  struct Grid {
    std::int64_t rows = 1, columns = 1;  // tiles
    double tile_rows = 1, tile_columns = 1;
    double operand_bytes = 0;  // of both matrices
  };
  Grid grid_of(const GemmSize& size) const;
  double hits(const Grid& grid, double workgroups) const;
  double steps_of(double iterations) const;
  double at_once_ns(const Grid& grid, double workgroups, double l2_hits, double llc_hits) const;
  double shared_ns(const Grid& grid, const Decomposition& split) const;
  double whole_ns(const Grid& grid, const Decomposition& split) const;
  double store_ns(const Grid& grid, double workgroups, double bytes) const;
  double partial_ns() const;  // to store a partial sum
  double peer_ns() const;     // to add a partial sum

  const Gpu gpu_;
  const KernelCosts costs_;
  const Element element_;
  const MatmulTile tile_;
  const int occupancy_;
  const std::int32_t group_m_;
  std::int32_t depth_ = 1;  // of a step
  double compute_ns_ = 0;   // of a step
  std::int32_t stages_ = 2;
  double start_ns_ = 0;
  double gap_ns_ = 0;
};

}  // namespace tritax
