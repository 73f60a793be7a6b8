#include "backend_hip/kernels.hpp"
#include "backend_hip/tile_fp64.hpp"

namespace tritax::gpu {

namespace {

template <class Shape>
TileKernel fp64_entry() {
  TileKernel kernel;
  kernel.traits = {Shape::dtype,        Shape::kM,         Shape::kN,        Shape::kThreads,
                   Shape::kSharedBytes, Shape::kStoreCols, Shape::kStoreRows};
  kernel.function = reinterpret_cast<const void*>(&fp64_kernel<Shape>);
  return kernel;
}

}  // namespace

std::vector<TileKernel> matmul_kernels_fp64() {
#if defined(TRITAX_GPU_NVIDIA)
  constexpr int kColsOfEight = 4;  // for the eight waves of a 128×128 tile
#else
  constexpr int kColsOfEight = 2;  // four waves of 64 lanes
#endif
  return {fp64_entry<Fp64Shape<128, 128, 2, kColsOfEight>>(), fp64_entry<Fp64Shape<128, 64, 2, 2>>(),
          fp64_entry<Fp64Shape<64, 128, 1, 4>>(), fp64_entry<Fp64Shape<64, 64, 2, 2>>()};
}

}  // namespace tritax::gpu
