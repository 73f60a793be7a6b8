// The schedules behind the microbenchmarks: each asks one question about a node and knows no workload. The
// GPU backend runs them, `tritax calibrate` simulates them; which are run, and with what, stands in
// model/microbench/cases.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/parts/gemm_knobs.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// `count` launches of a kernel whose `workgroups` do nothing, then a device synchronisation.
Schedule empty_kernels(int count, bool in_graph, int workgroups);

// `count` host barriers on every rank.
Schedule host_barriers(int ranks, int count);

// `count` synchronisations with an idle GPU.
Schedule idle_synchronises(int count);

// One workgroup of every rank signals all others and waits for them, `count` times.
Schedule device_barriers(int ranks, int count);

// Two workgroups, on two GPUs or on one, raise each other's flag `rounds` times.
Schedule flag_ping_pong(bool two_gpus, int rounds, LockProtocol protocol);

// One workgroup raises `count` flags, a second kernel waits for each of them: what a signal and a wait for a
// flag that is already set cost.
Schedule flag_costs(bool two_gpus, int count, LockProtocol protocol);

enum class Motion : std::uint8_t { store, load, copy_out, copy_in, atomic_add };
inline constexpr std::array<std::string_view, 5> kMotionNames{"store", "load", "copy-out", "copy-in",
                                                              "atomic-add"};

enum class TrafficPattern : std::uint8_t { local, one_pair, all_in_order, all_rotated };
inline constexpr std::array<std::string_view, 4> kTrafficNames{"local", "one-pair", "all-in-order",
                                                               "all-rotated"};

constexpr std::string_view name_of(Motion motion) { return kMotionNames[static_cast<std::size_t>(motion)]; }
constexpr std::string_view name_of(TrafficPattern traffic) {
  return kTrafficNames[static_cast<std::size_t>(traffic)];
}

struct MotionCase {
  Motion motion = Motion::store;
  TrafficPattern traffic = TrafficPattern::one_pair;
  int ranks = 2;
  int workgroups = 1;
  int threads = 1024;  // 0: a kernel with a matmul tile of 128×256, as the copies of a specialised kernel
  std::int64_t bytes = 0;  // that every sending rank moves, over all peers
  std::int32_t tile_rows = 128;
  std::int64_t footprint = 0;  // bytes that are walked again and again; 0: all of `bytes`, once
  std::int32_t tile_cols = 128;
  std::int32_t matrix_cols =
      0;  // of the matrix with the tiles; 0: they lie one below the other, each contiguous
  std::int32_t first_col = 0;  // of the matrix, where the tiles begin
  bool guarded = false;        // a wait before every tile, for a flag that a kernel before has set
  bool flag_each = false;      // then for one of its own
  // Every sending rank runs a kernel of as many workgroups before, a short matmul each.
  bool behind_matmul = false;
  int products =
      0;  // workgroups of every sending rank that are at work on a product beside, until after the end
  std::int32_t product_rows = 128, product_cols = 256;  // their tile
};

// Every workgroup moves tiles of bf16 elements, round robin over the peers. A footprint
// larger than the caches is read from memory, a small one from L2.
Schedule motion(const MotionCase& c);

// Every workgroup of a matmul kernel computes one small product and stores it to `tiles` tiles of C, as fused
// patterns do: side by side in rows of tiles of its own, or, with `matrix_cols`, wherever the grid of a
// product would put them in a matrix of so many columns.
Schedule tile_stores(int ranks, TrafficPattern traffic, std::int32_t m, std::int32_t n, int workgroups,
                     int tiles, std::int32_t matrix_cols = 0);

// Which workgroups of a grid of tiles begin together: all, those of a column (which share operands of B),
// those of a row (A), or no two that share any, a K step or several one after the other.
enum class Stagger : std::uint8_t { none, between_columns, between_rows, each, far };
inline constexpr std::array<std::string_view, 5> kStaggerNames{"together", "columns", "rows", "apart", "far"};

// On one GPU every workgroup computes a tile of its own `tiles` times and stores it; those that begin later
// do a part of it first.
Schedule staggered_tiles(std::int32_t m, std::int32_t n, std::int32_t k, int workgroups, int tiles,
                         Stagger stagger);

// On every rank: every workgroup computes `tiles` tiles over all of K, all from the same few operand tiles,
// and stores the last one or each. On all GPUs of a node the slowest one shows.
Schedule matmul_tiles(int ranks, DType dtype, std::int32_t m, std::int32_t n, std::int32_t k, int workgroups,
                      int tiles, bool store_each = false);

// Every workgroup computes `tiles` tiles of 16 rows by a kernel for 128, all from the same rows of A, and
// behind the store of each has `count` more operations: stores of it into other buffers, or signals on its
// GPU.
Schedule low_tiles(std::int32_t n, std::int32_t k, int workgroups, int tiles, OpKind kind, int count);

// How far a tile of `chain` comes.
enum class ChainEnd : std::uint8_t { matmul, store, signal, wait, barrier };

// Every workgroup computes `tiles` tiles of 128x128 over `k`, all from the same rows of A, and stores and
// signals each as far as `end` says; from `wait` on as many workgroups of the same kernel wait for these
// signals, each for those of one, and have a barrier behind that.
Schedule chain(std::int32_t k, int workgroups, int tiles, ChainEnd end);

// Every workgroup of a kernel without matmuls copies `tiles` tiles within its GPU.
Schedule lone_copies(int workgroups, int tiles);

// Every workgroup computes one tile over all of K, all with the same rows of A, each with columns of B of its
// own, and stores it. Beside them as many as `products` workgroups are at work on a product, until after the
// end.
Schedule matmul_streams(std::int32_t m, std::int32_t n, std::int32_t k, int workgroups, int products = 0);

// On every rank a barrier, `count` kernels one after the other, by one launch each or in one graph, of which
// every workgroup computes the same small tile, a device synchronisation and a barrier: what hosts do around
// every pattern, and have to wait for.
Schedule matmul_steps(int ranks, int count, bool in_graph, int workgroups);

// The same product C = A·B on every rank by persistent workgroups, one per compute unit, tiles in groups of
// `group_m` row tiles.
struct PlainGemm {
  DType dtype = DType::bf16;
  std::int32_t m = 0, n = 0, k = 0;
  std::int32_t tile_m = 128, tile_n = 256;
  std::int32_t group_m = 8;
};
Schedule plain_gemm(const PlainGemm& gemm, std::int32_t compute_units, int ranks = 1);

// A GEMM of `gemm_workgroups` beside `sending_workgroups` that copy to the other GPU, or fetch from it; 0:
// without.
Schedule gemm_beside_copies(int gemm_workgroups, int sending_workgroups, std::int64_t copy_bytes,
                            bool fetch = false);

}  // namespace tritax
