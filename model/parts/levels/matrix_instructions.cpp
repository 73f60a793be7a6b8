#include "model/parts/levels/matrix_instructions.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "model/core/error.hpp"

namespace tritax {

namespace {

using enum DType;

// Per architecture and type, larger ones first.
constexpr std::array<MatrixInstruction, 34> kMatrixInstructions{{
    {"gfx90a", fp16, "v_mfma_f32_32x32x8f16", 32, 32, 8},
    {"gfx90a", fp16, "v_mfma_f32_16x16x16f16", 16, 16, 16},
    {"gfx90a", bf16, "v_mfma_f32_32x32x8bf16_1k", 32, 32, 8},
    {"gfx90a", bf16, "v_mfma_f32_16x16x16bf16_1k", 16, 16, 16},
    {"gfx90a", fp32, "v_mfma_f32_32x32x2f32", 32, 32, 2},
    {"gfx90a", fp32, "v_mfma_f32_16x16x4f32", 16, 16, 4},
    {"gfx90a", fp64, "v_mfma_f64_16x16x4f64", 16, 16, 4},
    {"gfx942", fp16, "v_mfma_f32_32x32x8_f16", 32, 32, 8},
    {"gfx942", fp16, "v_mfma_f32_16x16x16_f16", 16, 16, 16},
    {"gfx942", bf16, "v_mfma_f32_32x32x8_bf16", 32, 32, 8},
    {"gfx942", bf16, "v_mfma_f32_16x16x16_bf16", 16, 16, 16},
    {"gfx942", fp8, "v_mfma_f32_32x32x16_fp8_fp8", 32, 32, 16},
    {"gfx942", fp8, "v_mfma_f32_16x16x32_fp8_fp8", 16, 16, 32},
    {"gfx942", fp32, "v_mfma_f32_32x32x2_f32", 32, 32, 2},
    {"gfx942", fp32, "v_mfma_f32_16x16x4_f32", 16, 16, 4},
    {"gfx942", fp64, "v_mfma_f64_16x16x4_f64", 16, 16, 4},
    {"gfx950", fp16, "v_mfma_f32_32x32x16_f16", 32, 32, 16},
    {"gfx950", fp16, "v_mfma_f32_16x16x32_f16", 16, 16, 32},
    {"gfx950", bf16, "v_mfma_f32_32x32x16_bf16", 32, 32, 16},
    {"gfx950", bf16, "v_mfma_f32_16x16x32_bf16", 16, 16, 32},
    {"gfx950", fp8, "v_mfma_scale_f32_32x32x64_f8f6f4", 32, 32, 64},
    {"gfx950", fp8, "v_mfma_scale_f32_16x16x128_f8f6f4", 16, 16, 128},
    {"gfx950", fp32, "v_mfma_f32_32x32x2_f32", 32, 32, 2},
    {"gfx950", fp32, "v_mfma_f32_16x16x4_f32", 16, 16, 4},
    {"gfx950", fp64, "v_mfma_f64_16x16x4_f64", 16, 16, 4},
    {"sm_80", fp16, "mma.sync.m16n8k16.f16", 16, 8, 16},
    {"sm_80", bf16, "mma.sync.m16n8k16.bf16", 16, 8, 16},
    {"sm_80", fp64, "mma.sync.m8n8k4.f64", 8, 8, 4},
    {"sm_90a", fp16, "wgmma.m64nNk16.f16", 64, 256, 16, 8, 4, true},
    {"sm_90a", bf16, "wgmma.m64nNk16.bf16", 64, 256, 16, 8, 4, true},
    {"sm_90a", fp8, "wgmma.m64nNk32.e4m3", 64, 256, 32, 8, 4, true},
    {"sm_90a", fp64, "mma.sync.m16n8k16.f64", 16, 8, 16},
    {"xe-hpc", fp16, "dpas.8x8.hf", 8, 16, 16},
    {"xe-hpc", bf16, "dpas.8x8.bf", 8, 16, 16},
}};

constexpr std::int64_t padded(std::int32_t value, std::int32_t to) {
  return std::int64_t{(value + to - 1) / to} * to;
}

// The instruction with its n cut to the need of a product.
MatrixInstruction cut_to(MatrixInstruction instruction, std::int32_t n) {
  if (instruction.n_step <= 0) return instruction;
  const std::int64_t instructions = (n + instruction.n - 1) / instruction.n;
  const std::int64_t columns = (n + instructions - 1) / instructions;
  instruction.n = static_cast<std::int32_t>(padded(static_cast<std::int32_t>(columns), instruction.n_step));
  return instruction;
}

}  // namespace

std::vector<MatrixInstruction> matrix_instructions(std::string_view arch, DType dtype) {
  std::vector<MatrixInstruction> found;
  for (const MatrixInstruction& row : kMatrixInstructions) {
    if (row.arch == arch && row.dtype == dtype) found.push_back(row);
  }
  return found;
}

MatrixInstruction matrix_instruction_for(const Gpu& gpu, DType dtype, std::int32_t m, std::int32_t n) {
  MatrixInstruction best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const MatrixInstruction& row : matrix_instructions(gpu.arch, dtype)) {
    const MatrixInstruction one = cut_to(row, n);
    const std::int64_t area = padded(m, one.m) * padded(n, one.n);
    if (area >= least) continue;
    best = one;
    least = area;
  }
  if (best.m > 0 && gpu.rate(dtype).flop_per_clk_per_cu > 0) return best;
  throw UserError(fmt::format(
      "dtype {}: no matrix instruction of {} ({}) for it is known, so its tiles have no instruction level",
      name_of(dtype), gpu.name, gpu.arch));
}

double interval_clk(const Gpu& gpu, DType dtype, const MatrixInstruction& instruction) {
  const double flops = 2.0 * instruction.m * instruction.n * instruction.k / instruction.waves;
  return flops / (gpu.rate(dtype).flop_per_clk_per_cu / gpu.simds_per_cu);
}

}  // namespace tritax
