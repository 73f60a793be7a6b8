// Table of the matmul kernels of one dtype, for the kernels_*.hip files.
#pragma once

#include <vector>

#include "backend_hip/kernels.hpp"

#if defined(TRITAX_GPU_NVIDIA)
#include "backend_hip/tile_wgmma.hpp"
#else
#include "backend_hip/tile_mfma.hpp"
#endif

namespace tritax::gpu {

template <class Shape>
TileKernel entry() {
  TileKernel kernel;
  kernel.traits = {Shape::dtype,        Shape::kM,         Shape::kN,        Shape::kThreads,
                   Shape::kSharedBytes, Shape::kStoreCols, Shape::kStoreRows};
  kernel.function = reinterpret_cast<const void*>(&matmul_kernel<Shape>);
  return kernel;
}

}  // namespace tritax::gpu
