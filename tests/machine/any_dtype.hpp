// A random dtype that the matrix cores of a GPU have: not every part has fp8.
#pragma once

#include <rapidcheck.h>

#include "model/machine/machine.hpp"

namespace tritax {

inline DType any_dtype(const Gpu& gpu) {
  return *rc::gen::suchThat(rc::gen::element(DType::fp32, DType::fp16, DType::bf16, DType::fp8),
                            [&](DType dtype) { return gpu.rate(dtype).flop_per_clk_per_cu > 0; });
}

}  // namespace tritax
