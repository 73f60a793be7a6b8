// The vendor's GEMM, to compare with in the same run.
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

// Times C = A·B (row-major, random data, fp32 accumulation, of fp64 in fp64) `repeats` times on GPU 0 after
// `warmup` runs, microseconds each, `flush_bytes` written before every run. cuBLAS is loaded when this is
// called, so that nothing else needs it. Throws UserError where it cannot be loaded, on AMD builds, and for
// dtypes other than bf16, fp16 and fp64.
std::vector<double> time_vendor_gemm(const GemmShape& shape, int warmup, int repeats, double flush_bytes);

}  // namespace tritax::gpu
