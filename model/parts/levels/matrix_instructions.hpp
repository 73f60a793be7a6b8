// Matrix instructions by architecture: the smallest tile that hardware multiplies.
//
// An instruction multiplies m × k by k × n for one wave, or for a group of waves that issue it together. The
// interval at which a SIMD can begin an instruction follows from the machine file:
//
//   interval = 2·m·n·k / waves / (flop_per_clk / simds)      cycles
//
// 32×32×8 of fp16 on MI300X: 16,384 flops at 2048 / 4 flops per clock and SIMD, 32 cycles. Tests compare the
// intervals with those that vendors and others publish.
//
// Shapes: AMD Instinct MI200, MI300 and CDNA4 instruction set references (V_MFMA_*; cycles in the instruction
// map of ROCm/rocm-libraries shared/origami); NVIDIA PTX ISA (mma.sync, wgmma.mma_async); Intel Xe-HPC: DPAS
// of 8 rows, 16 columns and 32 bytes of K, the target of the lowering of arXiv:2503.14985 (pass
// match-target-size of intel/intel-xpu-backend-for-triton). Types without a matrix instruction (fp32 on
// NVIDIA and Intel, which have only the rounding TF32; fp64 on Intel) have no row.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"

namespace tritax {

struct MatrixInstruction {
  std::string_view arch;  // Gpu::arch
  DType dtype = DType::fp16;
  std::string_view name;  // "v_mfma_f32_32x32x8"
  std::int32_t m = 0;
  std::int32_t n = 0;  // the largest, if n has a step
  std::int32_t k = 0;
  std::int32_t n_step = 0;  // > 0: any multiple of n_step up to n
  std::int32_t waves = 1;   // waves that issue the instruction together
  bool from_lds = false;    // reads both operands from LDS itself
};

// Instructions of an architecture and type, largest first; empty: none is known.
std::vector<MatrixInstruction> matrix_instructions(std::string_view arch, DType dtype);

// The instruction for products of m × n of a wave (or group): the largest of those that pad least. Throws
// UserError if there is none for the GPU and type; `m` and `n` > 0.
MatrixInstruction matrix_instruction_for(const Gpu& gpu, DType dtype, std::int32_t m, std::int32_t n);

// Cycles between two such instructions on a SIMD.
double interval_clk(const Gpu& gpu, DType dtype, const MatrixInstruction& instruction);

}  // namespace tritax
