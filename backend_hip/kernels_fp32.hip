#include "backend_hip/matmul_kernels.hpp"

namespace tritax::gpu {

std::vector<TileKernel> matmul_kernels_fp32() {
#if defined(TRITAX_GPU_NVIDIA)
  return {};
#else
  return {entry<MfmaShape<DType::fp32, 256, 128> >(), entry<MfmaShape<DType::fp32, 128, 256> >(),
          entry<MfmaShape<DType::fp32, 128, 128> >(), entry<MfmaShape<DType::fp32, 64, 128> >(),
          entry<MfmaShape<DType::fp32, 64, 64> >()};
#endif
}

}  // namespace tritax::gpu
