#include "backend_hip/matmul_kernels.hpp"

namespace tritax::gpu {

std::vector<TileKernel> matmul_kernels_fp8() {
#if defined(TRITAX_GPU_NVIDIA)
  return {entry<WgmmaShape<DType::fp8, 128, 256>>(), entry<WgmmaShape<DType::fp8, 256, 128>>(),
          entry<WgmmaShape<DType::fp8, 128, 128>>(), entry<WgmmaShape<DType::fp8, 64, 256>>(),
          entry<WgmmaShape<DType::fp8, 64, 128>>()};
#else
  return {entry<MfmaShape<DType::fp8, 256, 256>>(), entry<MfmaShape<DType::fp8, 256, 128>>(),
          entry<MfmaShape<DType::fp8, 128, 256>>(), entry<MfmaShape<DType::fp8, 128, 128>>(),
          entry<MfmaShape<DType::fp8, 64, 128>>(),  entry<MfmaShape<DType::fp8, 64, 64>>()};
#endif
}

}  // namespace tritax::gpu
