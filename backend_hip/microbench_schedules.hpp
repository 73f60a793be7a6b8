// The schedules behind the microbenchmarks.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/patterns/pattern.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax::gpu {

// `count` launches of a kernel whose `workgroups` do nothing, then a device synchronisation.
Schedule empty_kernels(int count, bool in_graph, int workgroups);

// `count` host barriers on every rank.
Schedule host_barriers(int ranks, int count);

// Two workgroups, on two GPUs or on one, raise each other's flag `rounds` times.
Schedule flag_ping_pong(bool two_gpus, int rounds, LockProtocol protocol);

enum class Motion : std::uint8_t { store, load, copy_out, copy_in, atomic_add };
inline constexpr std::array<std::string_view, 5> kMotionNames{"store", "load", "copy-out", "copy-in",
                                                              "atomic-add"};

enum class Traffic : std::uint8_t { local, one_pair, all_in_order, all_rotated };
inline constexpr std::array<std::string_view, 4> kTrafficNames{"local", "one-pair", "all-in-order",
                                                               "all-rotated"};

struct MotionCase {
  Motion motion = Motion::store;
  Traffic traffic = Traffic::one_pair;
  int ranks = 2;
  int workgroups = 1;
  int threads = 1024;
  std::int64_t bytes = 0;  // that every sending rank moves, over all peers
};

// Every workgroup moves tiles of 128×128 bf16 elements (32 KiB), round robin over the peers; a buffer larger
// than the caches is walked once.
Schedule motion(const MotionCase& c);

// Every workgroup of a matmul kernel computes one small product and stores it `tiles` times, as fused
// patterns do.
Schedule tile_stores(int ranks, Traffic traffic, std::int32_t m, std::int32_t n, int workgroups, int tiles);

// Every workgroup computes `tiles` tiles over all of K, all from the same few operand tiles, and stores none
// but the last.
Schedule matmul_tiles(DType dtype, std::int32_t m, std::int32_t n, std::int32_t k, int workgroups, int tiles);

// A GEMM of `gemm_workgroups` beside `sending_workgroups` that copy to the other GPU; 0: without.
Schedule gemm_beside_copies(int gemm_workgroups, int sending_workgroups, std::int64_t copy_bytes);

}  // namespace tritax::gpu
