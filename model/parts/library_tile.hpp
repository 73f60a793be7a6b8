// The tile of a vendor's GEMM library for a shape, and the number of parts into which it splits K.
//
// A hand-tuned library has kernels for many tiles. The 16-bit kernels of hipBLASLt have edges in steps of 32
// up to 256 (kernel names contain the tile: Cijk_Alik_Bljk_BBS_BH_…_MT224x256x64, …_HHS_BH_…_MT96x128x64), so
// that a shape seldom leaves compute units idle. Steps of K are up to 512 deep where tiles are small
// (…_MT16x16x512_MI16x16x1_…: ROCm/rocm-libraries projects/hipblaslt/tensilelite SolutionStructs/Solution.py;
// MT32x16x256, MT32x32x256 and MT48x64x256 too are names in traces of bf16 decode on MI300X and MI355X); each
// wave then multiplies a slice of the step. For other AMD kernels, powers of two are assumed (rocBLAS fp32:
// Cijk_Alik_Bljk_SB_MT128x128x16, MT64x128x16). cuBLAS on Hopper has one edge in steps of the 64 rows of
// wgmma and the other in steps of 8, either way round (nvjet_sm90_tst_192x96_64x5_…, …_64x16_…, …_320x128_…:
// scenarios/measured/h200-4-library-microbench.csv). The library picks, for the given shape, the tile and the
// number of parts with the least
//
//   max(rounds · (tile time + prologue + store), traffic of L2 and of memory) + time to add the parts,
//   rounds = ceil(tiles · parts / compute units)
//
// by the cost law of model/cost/matmul_cost.hpp with the overlapped pipeline. A tile takes at least the time
// in which its stages arrive from memory (in the first round, and in later rounds where either operand of
// most tiles comes from memory). Where copies are asynchronous, LDS holds at least three stages of operands.
// Larger tiles and fewer parts win ties. This is the closed-form ranking of ROCm/rocm-libraries
// shared/origami in its simplest form. With several parts, every part is a separate product, stored in fp32
// (fp64: in fp64), and a second kernel adds the parts up (in cuBLAS: cublasLt::splitKreduce_kernel).
//
// Copies by the tensor memory accelerator need rows of whole 16 bytes; asynchronous copies of the generation
// before need rows of whole 4 bytes (NVIDIA CUDA C++ programming guide, tensor maps and asynchronous data
// copies). For 16-bit numbers in other rows cuBLAS falls back to kernels of older generations, at a third or
// a sixth of the rate: cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_nn_align2 with an even number of
// elements per row, cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1 with an odd number; smaller
// tiles are 128x128 and 64x64 (scenarios/measured/h200-library-unaligned.csv). fp32 does not use the matrix
// cores there; its tiles are 256x128, 128x64, 64x64 and 64x32, either way round (h200-library-fp32.csv). fp64
// has the tiles that CUTLASS instantiates for double-precision mma (NVIDIA/cutlass python/cutlass_library
// generator.py, GenerateSM80_TensorOp_884); no measurement of cuBLAS confirms these.
//
// hipBLASLt takes the kernel of the nearest tuned shape. For fp32 on gfx942, not transposed, the tuned shapes
// of more than 1.5·10¹⁰ multiplications end at K = 4096; at 16384 all of them share the kernel MT256x64x16,
// 256 columns and 64 rows of a row-major C (ROCm/hipBLASLt @092cc83, solution 1433 of
// Tensile/Logic/asm_full/aquavanjaram/gfx942/GridBased/aquavanjaram_Cijk_Ailk_Bljk_SB_Bias_HA_SAV.yaml). This
// kernel is used where K is nearer to 16384 than to 4096, however many compute units it leaves idle.
#pragma once

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// A product of one rank: M × K by K × N. `least_n`: the fewest columns of any rank, because the fast kernels
// need aligned rows on all ranks; 0: all ranks have N columns.
struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::fp16;
  std::int64_t least_n = 0;
};

struct LibraryTile {
  MatmulTile tile;
  std::int32_t parts = 1;          // of K
  DType part_dtype = DType::fp32;  // dtype of the products of parts of K
  LibraryRoutine routine = LibraryRoutine::gemm;
};

// Depth of K of every part but the last: whole steps of the tile.
std::int64_t depth_of_part(std::int64_t k, const LibraryTile& choice);

// Throws UserError if none of the tiles fits a compute unit of the machine.
LibraryTile library_tile(const GemmShape& shape, const Machine& machine);

}  // namespace tritax
