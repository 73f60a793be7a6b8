// Overlap patterns: each turns a workload, a machine and knobs into a tile schedule.
//
// One file a pattern in this folder, one line a pattern in patterns.cpp; nothing else knows their names. The
// taxonomy is that of arXiv:2511.12500 §4 and ROCm/iris docs/conceptual/taxonomy.md.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/gemm_all_scatter.hpp"

namespace tritax {

// fixed: ranks 0..W-1 on every rank (Iris); rotated: own rank + 1, + 2, …; staggered: as rotated, but
// workgroup w begins w peers later, so that the workgroups of a rank use all of its links at once.
enum class PeerOrder : std::uint8_t { fixed, rotated, staggered };
inline constexpr std::array<std::string_view, 3> kPeerOrderNames{"fixed", "rotated", "staggered"};

enum class LaunchMode : std::uint8_t { stream, graph };
inline constexpr std::array<std::string_view, 2> kLaunchModeNames{"stream", "graph"};

// Everything that a pattern may be asked to vary. A pattern ignores what it does not use, and says so in
// `uses`.
struct Knobs {
  std::int32_t tile_m = 256;  // GEMM tile
  std::int32_t tile_n = 256;
  std::int32_t tile_k = 64;
  std::int32_t waves = 8;
  Pipeline pipeline = Pipeline::serial;
  std::int32_t comm_tile_m = 0;  // communication tile; 0: the GEMM tile
  std::int32_t comm_tile_n = 0;
  std::int32_t gemm_cus = 0;  // workgroups of the compute role; 0: all that the pattern can use
  std::int32_t comm_cus = 0;  // workgroups of the communication role; 0: the pattern's default
  std::int32_t group_m = 6;   // row tiles of a group in the grid order
  bool xcd_remap = true;      // give every XCD a contiguous range of tiles
  PeerOrder peer_order = PeerOrder::fixed;
  LockProtocol lock = LockProtocol::load_store;
  LaunchMode launch = LaunchMode::stream;
  bool host_barriers = true;  // the measured region starts and ends with one, as in the Iris harness

  friend bool operator==(const Knobs&, const Knobs&) = default;
};

// What the knobs of every pattern must be, besides what the machine allows.
inline constexpr std::int32_t kTileStep = 16;  // edge of the smallest matrix instruction
inline constexpr std::int32_t kMaxGemmTile = 512;
inline constexpr std::int32_t kMaxCommTile = 4096;
inline constexpr std::int32_t kMaxWaves = 16;
inline constexpr std::string_view kAllowedWaves = "1, 2, 4, 8 or 16";
inline constexpr std::string_view kAllowedCus = "at least 1 and at most the compute units of the machine";

// Knobs that suit the machine where the user says nothing: 128 bytes of K a step; Triton's 256×256 tile with
// the serial pipeline where waves feed the LDS (AMD), 128×256 with asynchronous copies where the GPU has them
// (NVIDIA).
Knobs default_knobs(const Machine& machine, DType dtype);

// Of `cus` compute units, those that communicate where neither part of a split is given (ROCm/iris example
// 11): the largest power of two computes, the rest communicates; one in eight where nothing would be left.
std::int32_t default_comm_cus(std::int32_t cus);

// Which knobs change the schedule of a pattern.
struct KnobUse {
  bool tile = true;
  bool comm_tile = false;
  bool gemm_cus = false;
  bool comm_cus = false;
  bool splits_cus = false;      // gemm_cus and comm_cus run side by side and share the compute units
  bool in_two_kernels = false;  // … each in a kernel of its own
  bool grid_order = true;
  bool peer_order = false;
  bool lock = false;
  bool launch = true;
};

// The knobs by their names in files; the option of `comm_tile` is --comm-tile. In the order of tables.
struct KnobName {
  std::string_view name;
  bool KnobUse::*use;
};
inline constexpr std::array<KnobName, 11> kKnobNames{{{"tile", &KnobUse::tile},
                                                      {"waves", &KnobUse::tile},
                                                      {"pipeline", &KnobUse::tile},
                                                      {"comm_tile", &KnobUse::comm_tile},
                                                      {"gemm_cus", &KnobUse::gemm_cus},
                                                      {"comm_cus", &KnobUse::comm_cus},
                                                      {"group_m", &KnobUse::grid_order},
                                                      {"xcd_remap", &KnobUse::grid_order},
                                                      {"peer_order", &KnobUse::peer_order},
                                                      {"lock", &KnobUse::lock},
                                                      {"launch", &KnobUse::launch}}};

struct Pattern {
  std::string_view name;     // "producer-consumer"
  std::string_view summary;  // one line for tables
  KnobUse uses;
  Schedule (*build)(const GemmAllScatter& workload, const Machine& machine, const Knobs& knobs);
  // The tile that it chooses where `uses` has none; null for the others.
  MatmulTile (*own_tile)(const GemmAllScatter& workload, const Machine& machine) = nullptr;
};

// All patterns, the library baseline first.
std::span<const Pattern> patterns();

// Throws UserError that lists the names, with the nearest one offered. `where` is the flag or file:line to
// blame.
const Pattern& find_pattern(std::string_view name, const std::string& where);

// Builds the schedule of a pattern. Throws UserError when the workload, the knobs or the machine do not allow
// it: a tile that does not fit LDS or registers, more GPUs or compute units than there are.
Schedule build_schedule(const Pattern& pattern, const GemmAllScatter& workload, const Machine& machine,
                        const Knobs& knobs);

// Resources of a workgroup that computes tiles of this shape: accumulators and operand fragments in
// registers, the operand stages in LDS. Throws UserError when the tile does not fit a compute unit of `gpu`.
Resources matmul_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile);

}  // namespace tritax
