// The tile that a vendor's GEMM library uses.
//
// A hand-tuned library has kernels for many tiles. The 16-bit kernels of hipBLASLt have edges in steps of 32
// up to 256 (it names them after their tiles: Cijk_Alik_Bljk_BBS_BH_…_MT224x256x64, …_HHS_BH_…_MT96x128x64),
// so that a shape seldom leaves compute units idle. Other kernels are taken to have powers of two (rocBLAS
// fp32: Cijk_Alik_Bljk_SB_MT128x128x16, MT64x128x16). The library picks, for the shape at hand, the one with
// the least
//
//   waves · (tile time + prologue + store),   waves = ceil(tiles / compute units)
//
// by the cost law of model/cost/matmul_cost.hpp with the overlapped pipeline; larger tiles win ties. This is
// the closed-form ranking of ROCm/rocm-libraries shared/origami in its simplest form.
//
// hipBLASLt itself takes the kernel of the nearest shape that was tuned. For fp32 on gfx942, not transposed,
// the tuned shapes of more than 1.5·10¹⁰ multiplications end at K = 4096; at 16384 all of them share the
// kernel MT256x64x16, 256 columns and 64 rows of a row-major C (ROCm/hipBLASLt @092cc83, solution 1433 of
// Tensile/Logic/asm_full/aquavanjaram/gfx942/GridBased/aquavanjaram_Cijk_Ailk_Bljk_SB_Bias_HA_SAV.yaml). It
// is used from K nearer to 16384 than to 4096 on, however many compute units it leaves idle.
#pragma once

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/gemm_all_scatter.hpp"

namespace tritax {

// Throws UserError if none of the tiles fits a compute unit of `gpu`.
MatmulTile library_tile(const GemmAllScatter& workload, const Gpu& gpu);

}  // namespace tritax
