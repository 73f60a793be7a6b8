// Tile schedules of the workloads that are no GEMM + all-scatter; `build_scenario` is the way in.
#pragma once

#include <cstdint>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace tritax {

inline constexpr std::int32_t kAllGatherTile = 128;  // rows and columns, ROCm/iris iris/ccl/config.py

// The vendor's GEMM on rank 0: the GEMM kernel of the library pattern, launched alone, with the tile that the
// library would pick or the given one.
Schedule library_gemm_schedule(const LibraryGemm& workload, const Machine& machine);

// One kernel on every active rank whose workgroups move blocks; see remote_access.cpp for how a block becomes
// tile operations. Throws UserError when a block does not fit a tile operation of this machine.
Schedule remote_access_schedule(const RemoteAccess& workload, const Machine& machine);

// Persistent push kernel of knobs.comm_cus workgroups a rank: workgroup p loads tiles p, p + n, … of its
// shard and stores each to all ranks, itself included (ROCm/iris iris/ccl all_gather). With `library`, the
// collective kernel of the library pattern.
Schedule all_gather_schedule(const AllGather& workload, const Machine& machine, const Knobs& knobs);

// Rows of the blocks of a coarsened grid, in dispatch order; they sum to `rows`. `slots` blocks are resident
// at once and each stands for `granule` rows in flight. The first rounds have blocks of one granule, so that
// start-up effects keep their size; then sizes double, up to rows / (slots · generations); at the end a block
// is at most half of what is left over the slots, so that no slot idles for long. All but the last are
// granule · 2^i: few sizes.
std::vector<std::int64_t> coarsened_blocks(std::int64_t rows, std::int64_t granule, std::int64_t slots,
                                           std::int64_t generations);

}  // namespace tritax
