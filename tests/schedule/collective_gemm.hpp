// A GEMM behind an all-gather and one before a reduce-scatter, whose data is input, or summed, in place.
#pragma once

#include <algorithm>

#include "model/schedule/builder.hpp"

namespace tritax {

// Rank r's rows of A are input on rank r, the other rows come from its peers: C_r = A·B_r.
struct InPlaceAllGatherGemm {
  int ranks = 2;
  std::int32_t rows = 16;  // of the slice of a rank
  std::int32_t k = 32;
  std::int32_t n = 32;
  DType dtype = DType::fp16;
  MatmulTile tile{16, 16, 16, 4, Pipeline::serial};

  Rect slice(int rank) const { return {rank * rows, 0, rows, k}; }
};

// Buffers 0, 1, 2: A, B, C. Kernels: "gather" of every rank, then "gemm" of every rank.
inline Schedule all_gather_gemm(const InPlaceAllGatherGemm& w) {
  ScheduleBuilder builder("all-gather in place, then GEMM", w.ranks);
  const std::int32_t m = w.ranks * w.rows;
  const auto a = builder.buffer({"A", w.dtype, m, w.k, w.rows, w.k});
  const auto b = builder.buffer({"B", w.dtype, w.k, w.n, w.k, w.n});
  const auto c = builder.buffer({"C", w.dtype, m, w.n, w.tile.m, w.tile.n});
  const auto arrived = builder.flags("arrived", w.ranks);
  builder.result(c);
  builder.input(builder.whole(b));
  for (int rank = 0; rank < w.ranks; ++rank) {
    const Region slice{a, rank, w.slice(rank)};
    builder.input(slice);
    builder.expect_copy({a, kEveryRank, slice.rect}, slice);
    for (int to = 0; to < w.ranks; ++to) {
      const Rect rows_of_c{slice.rect.row, 0, w.rows, w.n};
      builder.expect_product({c, to, rows_of_c}, slice, builder.whole(b, to));
    }
    Kernel kernel;
    kernel.name = "gather";
    kernel.rank = rank;
    builder.workgroup(builder.kernel(std::move(kernel)));
    for (int step = 1; step < w.ranks; ++step) {
      const int to = (rank + step) % w.ranks;
      builder.copy(a, slice.rect, to, a, slice.rect.row, 0, rank);
      builder.signal(arrived, rank, 1, to, Scope::system, LockProtocol::load_store);
    }
    if (w.ranks == 1) builder.barrier();
    builder.launch(rank, rank, 0);
  }
  for (int rank = 0; rank < w.ranks; ++rank) {
    Kernel kernel;
    kernel.name = "gemm";
    kernel.rank = rank;
    kernel.tile = w.tile;
    kernel.placement = Placement::persistent;
    const std::int32_t id = builder.kernel(std::move(kernel));
    builder.workgroup(id);
    for (int step = 1; step < w.ranks; ++step) {
      builder.wait(arrived, (rank + step) % w.ranks, 1, Scope::system, LockProtocol::load_store);
    }
    for (std::int32_t row = 0; row < m; row += w.tile.m) {
      for (std::int32_t col = 0; col < w.n; col += w.tile.n) {
        const Rect rect{row, col, std::min(w.tile.m, m - row), std::min(w.tile.n, w.n - col)};
        builder.matmul(a, b, rect, 0, w.k);
        builder.store(c, rect, rank);
      }
    }
    builder.launch(rank, id, 1);
    builder.host(rank, HostOpKind::device_synchronize);
    builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

// Rank r ends with its rows of Σ A_q·B_q: every rank adds its part, of one tile, to the zeros of all. C is
// fp32.
struct GemmReduceScatter {
  int ranks = 2;
  std::int32_t rows = 16;  // of C on a rank
  std::int32_t k = 32;
  std::int32_t n = 32;
  DType dtype = DType::fp16;
  std::int32_t tile_k = 16;
};

inline Schedule gemm_reduce_scatter(const GemmReduceScatter& w) {
  ScheduleBuilder builder("GEMM, then reduce-scatter", w.ranks);
  const auto a = builder.buffer({"A", w.dtype, w.ranks * w.rows, w.k, w.rows, w.k});
  const auto b = builder.buffer({"B", w.dtype, w.k, w.n, w.k, w.n});
  const auto c = builder.buffer({"C", DType::fp32, w.rows, w.n, w.rows, w.n});
  builder.result(c);
  builder.input(builder.whole(a));
  builder.input(builder.whole(b));
  builder.input(builder.whole(c), InputValues::zero);
  for (int rank = 0; rank < w.ranks; ++rank) {
    for (int of = 0; of < w.ranks; ++of) {
      const Region rows{a, of, {rank * w.rows, 0, w.rows, w.k}};
      builder.expect_product(builder.whole(c, rank), rows, builder.whole(b, of), of > 0);
    }
    Kernel kernel;
    kernel.name = "gemm";
    kernel.rank = rank;
    kernel.tile = {w.rows, w.n, w.tile_k, 8, Pipeline::overlapped};
    const std::int32_t id = builder.kernel(std::move(kernel));
    for (int to = 0; to < w.ranks; ++to) {
      builder.workgroup(id);
      builder.matmul(a, b, {to * w.rows, 0, w.rows, w.n}, 0, w.k);
      builder.atomic_add(c, {0, 0, w.rows, w.n}, to);
    }
    builder.launch(rank, id);
    builder.host(rank, HostOpKind::device_synchronize);
    builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax
