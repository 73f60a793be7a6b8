#include "backend_hip/attend_kernels.hpp"

namespace tritax::gpu {

std::vector<TileKernel> attend_kernels_bf16() { return attend_kernels<DType::bf16>(); }

}  // namespace tritax::gpu
