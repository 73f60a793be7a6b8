// A tile operation (a matmul tile or an attend tile) lowered from the workgroup: tiles of waves
// (wave_tiles.hpp), then matrix instructions (matrix_instructions.hpp), and the resources of a compute unit
// that both take.
//
// A wave's tile of a K step of depth k takes ceil(m/mi) · ceil(n/ni) · ceil(k/ki) instructions: 32×32 · 32×64
// of fp16 on Xe-HPC (8×16×16) takes 4 · 4 · 2 = 32. Edges are padded to whole instructions.
//
// How operands come to the matrix cores:
//
//   through registers   gfx90a, gfx942, gfx950: loads into registers one stage ahead, written into LDS, read
//                       as fragments; one stage of LDS in the serial pipeline, two in the overlapped one
//   by copies           sm_80: cp.async into as many stages of LDS as fit, read as fragments
//   by a copy engine    sm_90a: TMA into LDS, which wgmma reads itself
//   through the cache   Xe-HPC: prefetched into L1 three stages ahead (the default of arXiv:2503.14985), then
//                       loaded into registers; no LDS
//
// Registers of a thread, 32-bit: accumulators m·n of the wave / lanes; two sets of fragments (one in use, one
// arriving), each as deep as one read of 16 bytes per lane, or the whole stage through the cache; operands on
// their way to LDS through registers; and 24 for addresses and counters.
#pragma once

#include <string_view>
#include <vector>

#include "model/cost/kernel_costs.hpp"
#include "model/parts/levels/matrix_instructions.hpp"
#include "model/parts/levels/wave_tiles.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

enum class Feed : std::uint8_t { through_registers, by_copies, by_copy_engine, through_cache };
inline constexpr std::array<std::string_view, 4> kFeedNames{"through registers", "by copies",
                                                            "by a copy engine", "through the cache"};

// A product of a wave (or of a group of waves that issues instructions together) in a K step, or in a block
// of keys.
struct WaveProduct {
  std::string_view name;  // "C = A·B", "S = Q·Kᵀ", "O = P·V"
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  MatrixInstruction instruction;
  std::int32_t along_m = 0;  // instructions
  std::int32_t along_n = 0;
  std::int32_t along_k = 0;
  double clk_each = 0;  // cycles between two instructions on a SIMD

  std::int32_t instructions() const { return along_m * along_n * along_k; }
  double flops_share() const;  // useful share of the flops of the instructions
};

struct RegisterUse {  // of a thread, 32-bit
  std::int32_t accumulators = 0;
  std::int32_t fragments = 0;
  std::int32_t in_flight = 0;
  std::int32_t others = 0;
  std::int32_t total() const { return accumulators + fragments + in_flight + others; }
};

// Bytes per lane of the widest load, LDS write and LDS read.
inline constexpr std::int32_t kBytesOfLane = 16;
// Shape of a two-dimensional load of Xe-HPC: 32×32 of 16-bit types (arXiv:2503.14985).
inline constexpr std::int32_t kBlockRows = 32;
inline constexpr std::int32_t kBlockRowBytes = 64;

// Moves of a wave in a K step, in instructions of 16 bytes per lane (a copy engine: one per operand of the
// workgroup; through the cache: two-dimensional loads of 32 rows of 64 bytes).
struct WaveMoves {
  std::int32_t loads_a = 0;  // from memory; attention: a are the keys, b the values
  std::int32_t loads_b = 0;
  std::int32_t writes_a = 0;  // into LDS
  std::int32_t writes_b = 0;
  std::int32_t reads_a = 0;  // fragments out of LDS, or out of L1
  std::int32_t reads_b = 0;
};

struct Levels {
  DType dtype = DType::fp16;
  MatmulTile tile;
  Feed feed = Feed::through_registers;
  WaveTiles waves;
  std::int32_t waves_in_group = 1;  // waves that issue instructions together; `waves` counts groups
  std::vector<WaveProduct> products;
  WaveMoves moves;
  std::int32_t read_depth = 0;         // K of one read from LDS or L1; whole instructions
  std::int32_t stages = 1;             // of operands in LDS, or in registers through the cache
  std::int32_t prefetch_distance = 1;  // stages that are requested ahead
  RegisterUse registers;
  std::int32_t lds_bytes = 0;

  double flops() const;  // per K step of a workgroup
};

Feed feed_of(const Gpu& gpu, DType dtype);

// The levels of a tile. Throws UserError, with the reason, when waves do not divide the tile, when no
// instruction is known, or when the tile takes more registers or LDS than the GPU has.
Levels lower_matmul(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile);
Levels lower_attend(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile);

// Cost of a K step (of attention: a block of keys) on a compute unit at one level alone, with operands in L2.
struct LevelCost {
  double clk = 0;
  std::string bound;  // what takes longest
};

// The law of the whole tile: model/cost/matmul_cost.hpp, attend_cost.hpp.
LevelCost tile_cost(const Gpu& gpu, const KernelCosts& costs, const Levels& levels);

// The same law for the work that waves really do, instead of the best grid of waves and whole tiles: the
// padded instructions of each wave, and the fragments that it reads. Waves that share a SIMD run one after
// the other.
LevelCost wave_cost(const Gpu& gpu, const KernelCosts& costs, const Levels& levels);

}  // namespace tritax
