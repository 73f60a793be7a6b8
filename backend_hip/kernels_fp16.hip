#include "backend_hip/matmul_kernels.hpp"

namespace tritax::gpu {

std::vector<TileKernel> matmul_kernels_fp16() {
#if defined(TRITAX_GPU_NVIDIA)
  return {entry<WgmmaShape<DType::fp16, 128, 256>>(), entry<WgmmaShape<DType::fp16, 256, 128>>(),
          entry<WgmmaShape<DType::fp16, 128, 128>>(), entry<WgmmaShape<DType::fp16, 64, 256>>(),
          entry<WgmmaShape<DType::fp16, 64, 128>>(),  entry<WgmmaShape<DType::fp16, 256, 64>>(),
          entry<WgmmaShape<DType::fp16, 128, 64>>(),  entry<WgmmaShape<DType::fp16, 64, 64>>()};
#else
  return {entry<MfmaShape<DType::fp16, 256, 256>>(), entry<MfmaShape<DType::fp16, 256, 128>>(),
          entry<MfmaShape<DType::fp16, 128, 256>>(), entry<MfmaShape<DType::fp16, 128, 128>>(),
          entry<MfmaShape<DType::fp16, 64, 128>>(),  entry<MfmaShape<DType::fp16, 64, 64>>()};
#endif
}

}  // namespace tritax::gpu
