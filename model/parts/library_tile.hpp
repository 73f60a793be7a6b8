// The tile that a vendor's GEMM library uses, and into how many parts it splits K.
//
// A hand-tuned library has kernels for many tiles. The 16-bit kernels of hipBLASLt have edges in steps of 32
// up to 256 (it names them after their tiles: Cijk_Alik_Bljk_BBS_BH_…_MT224x256x64, …_HHS_BH_…_MT96x128x64),
// so that a shape seldom leaves compute units idle; steps of K are up to 512 deep where tiles are small
// (…_MT16x16x512_MI16x16x1_…: ROCm/rocm-libraries projects/hipblaslt/tensilelite SolutionStructs/Solution.py;
// MT32x16x256, MT32x32x256 and MT48x64x256 too are names in traces of bf16 decode on MI300X and MI355X), and
// each wave then multiplies a slice of them. Other AMD kernels are taken to have powers of two
// (rocBLAS fp32: Cijk_Alik_Bljk_SB_MT128x128x16, MT64x128x16). cuBLAS on Hopper has one edge in steps of the
// 64 rows of wgmma and the other in steps of 8, either way round (nvjet_sm90_tst_192x96_64x5_…, …_64x16_…,
// …_320x128_…: scenarios/measured/h200-4-library-microbench.csv). The library picks, for the shape at hand,
// the tile and the number of parts with the least
//
//   max(rounds · (tile time + prologue + store), traffic of L2 and of memory) + time to add the parts,
//   rounds = ceil(tiles · parts / compute units)
//
// by the cost law of model/cost/matmul_cost.hpp with the overlapped pipeline, a tile time that is no less
// than its stages take to arrive from memory (in the first round, and in later ones where either operand of
// most tiles comes from there), and at least three stages of operands in LDS where copies are asynchronous;
// larger tiles and fewer parts win ties. This is the
// closed-form ranking of ROCm/rocm-libraries shared/origami in its simplest form. With more than one part
// every part is a product of its own, stored in fp32 (fp64: in fp64), and a second kernel adds them up
// (cublasLt::splitKreduce_kernel, there).
//
// Copies by the tensor memory accelerator need rows of whole 16 bytes, asynchronous copies of the generation
// before rows of whole 4 (NVIDIA CUDA C++ programming guide, tensor maps and asynchronous data copies). For
// 16-bit numbers in other rows cuBLAS falls back to kernels of older generations, which reach a third or a
// sixth of the rate: cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256_64x3_nn_align2 with an even number of
// elements in a row, cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1 with an odd one; smaller ones
// are 128x128 and 64x64 (scenarios/measured/h200-library-unaligned.csv). fp32 runs beside the matrix cores
// there, in tiles of 256x128, 128x64, 64x64 and 64x32, either way round (h200-library-fp32.csv). fp64 has
// those that CUTLASS instantiates for double-precision mma (NVIDIA/cutlass python/cutlass_library
// generator.py, GenerateSM80_TensorOp_884), which no copy of a cuBLAS in use was asked for.
//
// hipBLASLt itself takes the kernel of the nearest shape that was tuned. For fp32 on gfx942, not transposed,
// the tuned shapes of more than 1.5·10¹⁰ multiplications end at K = 4096; at 16384 all of them share the
// kernel MT256x64x16, 256 columns and 64 rows of a row-major C (ROCm/hipBLASLt @092cc83, solution 1433 of
// Tensile/Logic/asm_full/aquavanjaram/gfx942/GridBased/aquavanjaram_Cijk_Ailk_Bljk_SB_Bias_HA_SAV.yaml). It
// is used from K nearer to 16384 than to 4096 on, however many compute units it leaves idle.
#pragma once

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// A product of one rank: M × K by K × N. `least_n`: the fewest columns that any rank has, since rows of all
// of them have to be aligned for the fast kernels; 0: all have N.
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
  DType part_dtype = DType::fp32;  // in which products of parts of K are kept
  LibraryRoutine routine = LibraryRoutine::gemm;
};

// Depth of K that each part but the last has: whole steps of the tile.
std::int64_t depth_of_part(std::int64_t k, const LibraryTile& choice);

// Throws UserError if none of the tiles fits a compute unit of the machine.
LibraryTile library_tile(const GemmShape& shape, const Machine& machine);

}  // namespace tritax
