// Knobs of kernels that multiply matrices in tiles and send pieces of tiles, shared by workloads with a GEMM.
//
// Workloads put rows of `gemm_knob` into their tables and read the values back with `gemm_knobs_of`. Knobs
// that a table does not have keep the defaults of this file.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/launching.hpp"
#include "model/workload/values.hpp"

namespace tritax {

// fixed: ranks 0..W-1 on every rank (Iris); rotated: own rank + 1, + 2, …; staggered: as rotated, but
// workgroup w begins w peers later, so that the workgroups of a rank use all links of the rank at once.
enum class PeerOrder : std::uint8_t { fixed, rotated, staggered };
inline constexpr std::array<std::string_view, 3> kPeerOrderNames{"fixed", "rotated", "staggered"};

// Whether a workgroup serves its peers in groups of operations that start together
// (model/schedule/group.hpp).
enum class ServesPeers : std::uint8_t { together, in_turn };
inline constexpr std::array<std::string_view, 2> kServesPeersNames{"together", "in-turn"};

// Defaults as in the kernels and the harness of ROCm/iris. For a user's run without knobs,
// `default_gemm_knobs` holds.
struct GemmKnobs {
  std::int32_t tile_m = 256;  // GEMM tile
  std::int32_t tile_n = 256;
  std::int32_t tile_k = 64;
  std::int32_t waves = 8;
  Pipeline pipeline = Pipeline::serial;
  std::int32_t comm_tile_m = 0;  // communication tile; 0: the GEMM tile
  std::int32_t comm_tile_n = 0;
  std::int32_t gemm_cus = 0;   // workgroups of the compute role; 0: as many as the pattern can use
  std::int32_t comm_cus = 0;   // workgroups of the communication role; 0: the pattern's default
  std::int32_t group_m = 6;    // row tiles of a group in the grid order
  bool xcd_remap = true;       // give every XCD a contiguous range of tiles …
  std::int32_t xcd_chunk = 0;  // … or chunks of this many numbers in turn; 0: its whole share
  PeerOrder peer_order = PeerOrder::fixed;
  LockProtocol lock = LockProtocol::load_store;
  LaunchMode launch = LaunchMode::stream;
  bool host_barriers = true;  // host barriers around the measured region, as in the Iris harness

  friend bool operator==(const GemmKnobs&, const GemmKnobs&) = default;
};

// Limits of the knobs, besides the limits of the machine.
inline constexpr std::int32_t kTileStep = 16;  // edge of the smallest matrix instruction
inline constexpr std::int32_t kMaxGemmTile = 512;
inline constexpr std::int32_t kMaxCommTile = 4096;
inline constexpr std::int32_t kMaxWaves = 16;
// Number of pipelines that searches and sensitivities try: no wave schedule is faster than the overlapped
// pipeline.
inline constexpr std::size_t kFreePipelines = 2;
inline constexpr std::string_view kAllowedCus = "at least 1 and at most the compute units of the machine";

// Rows for the tables of workloads: tile, waves, pipeline, comm_tile, gemm_cus, comm_cus, group_m, xcd_remap,
// xcd_chunk, peer_order, lock, launch, host_barriers.
const Spec& gemm_knob(std::string_view name);

// Knobs from the columns that `values` has, and defaults for the others.
GemmKnobs gemm_knobs_of(const Values& values);

// Puts the knobs into the columns that `values` has, as defaults or as given values.
void assume(Values& values, const GemmKnobs& knobs);
void give(Values& values, const GemmKnobs& knobs);

// The knobs with the tile of a library's kernel, which does not depend on the knobs.
Values with_tile(Values knobs, const MatmulTile& tile);

// Default knobs with this tile; of the knobs asked for, only `host_barriers` counts.
template <class Knobs>
Knobs library_knobs(const MatmulTile& tile, const GemmKnobs& asked) {
  Knobs knobs;
  knobs.tile_m = tile.m;
  knobs.tile_n = tile.n;
  knobs.tile_k = tile.k;
  knobs.waves = tile.waves;
  knobs.pipeline = tile.pipeline;
  knobs.host_barriers = asked.host_barriers;
  return knobs;
}

// Knobs for a run without given knobs; a search starts from them too. 128 bytes of K per step; a tile of
// 256×256 where waves feed the LDS (AMD) and 128×256 where copies are asynchronous (NVIDIA), or the largest
// halved tile that fits a compute unit; the overlapped pipeline, because patterns are compared, not the skill
// of kernel writers; staggered peers, which use all links at once; no harness around the measured region.
GemmKnobs default_gemm_knobs(const Machine& machine, DType dtype);

// Throws UserError for values that no machine allows, or that this GPU does not allow.
void check(const GemmKnobs& knobs, const Gpu& gpu);

// Throws UserError that names the knob where a role has more workgroups than the GPU has compute units. 0 is
// the default of the knob.
void check_cus(std::int64_t value, const char* knob, const Gpu& gpu);

// Communicating compute units of `cus` where neither part of a split is given (ROCm/iris example 11): the
// largest power of two computes, and the rest communicates; one in eight where nothing is left.
std::int32_t default_comm_cus(std::int32_t cus);

// Shape of the GEMM tile that the knobs ask for.
MatmulTile matmul_tile(const GemmKnobs& knobs);

}  // namespace tritax
