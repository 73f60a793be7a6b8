#include "backend_hip/attend_kernels.hpp"

namespace tritax::gpu {

std::vector<TileKernel> attend_kernels_fp16() { return attend_kernels<DType::fp16>(); }

}  // namespace tritax::gpu
