// The vendor's GEMM, for comparison in the same run.
#pragma once

#include <cstdint>
#include <vector>

#include "model/core/dtype.hpp"

namespace tritax::gpu {

struct GemmShape {
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  DType dtype = DType::bf16;
};

// Times C = A·B (row-major, random data, fp32 accumulation; fp64 accumulates in fp64) `repeats` times on GPU
// 0 after `warmup` runs, in microseconds each, with `flush_bytes` written before every run. The call loads
// cuBLAS, so that nothing else depends on it. Throws UserError where cuBLAS cannot be loaded, on AMD builds,
// and for dtypes other than bf16, fp16 and fp64.
std::vector<double> time_vendor_gemm(const GemmShape& shape, int warmup, int repeats, double flush_bytes);

}  // namespace tritax::gpu
