// Matrix instructions by architecture: the smallest tile that hardware multiplies.
//
// An instruction multiplies m × k by k × n for one wave, or for a group of waves that issue it together. How
// often a SIMD can begin one follows from the machine file,
//
//   interval = 2·m·n·k / waves / (flop_per_clk / simds)      cycles
//
// 32×32×8 of fp16 on MI300X: 16,384 flops at 2048 / 4 a clock and SIMD, 32 cycles. Tests hold intervals to
// those that vendors and others publish.
//
// Shapes: AMD Instinct MI200, MI300 and CDNA4 instruction set references (V_MFMA_*; cycles in the instruction
// map of ROCm/rocm-libraries shared/origami); NVIDIA PTX ISA (mma.sync, wgmma.mma_async); Intel Xe-HPC: DPAS
// of 8 rows, 16 columns and 32 bytes of K, as the lowering of arXiv:2503.14985 targets it (pass
// match-target-size of intel/intel-xpu-backend-for-triton). Types without an instruction of their own (fp32
// on NVIDIA and Intel, where there is only TF32, which rounds; fp64 on Intel) have no row.
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
  std::int32_t n = 0;  // the most, if it has a step
  std::int32_t k = 0;
  std::int32_t n_step = 0;  // > 0: any multiple of it up to n
  std::int32_t waves = 1;   // that issue it together
  bool from_lds = false;    // it reads both operands there itself
};

// Those of an architecture and type, largest first; empty: none is known.
std::vector<MatrixInstruction> matrix_instructions(std::string_view arch, DType dtype);

// The one for products of m × n of a wave (or group): the largest that pads least. Throws UserError if there
// is none for the GPU and type; `m` and `n` > 0.
MatrixInstruction matrix_instruction_for(const Gpu& gpu, DType dtype, std::int32_t m, std::int32_t n);

// Cycles between two of them on a SIMD.
double interval_clk(const Gpu& gpu, DType dtype, const MatrixInstruction& instruction);

}  // namespace tritax
