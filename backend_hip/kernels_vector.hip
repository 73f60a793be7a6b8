#include "backend_hip/kernels.hpp"
#include "backend_hip/tile_vector.hpp"

namespace tritax::gpu {

const void* vector_kernel_for(int threads, bool lean) {
  if (lean && threads <= kLeanThreads) return reinterpret_cast<const void*>(&vector_kernel<kLeanThreads, 1>);
  if (threads <= 256) return reinterpret_cast<const void*>(&vector_kernel<256>);
  if (threads <= 512) return reinterpret_cast<const void*>(&vector_kernel<512>);
  return reinterpret_cast<const void*>(&vector_kernel<1024>);
}

}  // namespace tritax::gpu
