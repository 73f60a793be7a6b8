#include "backend_hip/gpu_memory.hpp"

#include <fmt/format.h>

#include "model/core/error.hpp"

namespace tritax::gpu {

void check_gpu(hipError_t error, const char* call, const char* file, int line) {
  if (error == hipSuccess) return;
  throw GpuRuntimeError(
      fmt::format("GPU runtime: {} ({} at {}:{})", hipGetErrorString(error), call, file, line));
}

#if defined(TRITAX_GPU_NVIDIA)
void* driver_function(const char* name, unsigned int since) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  TRITAX_GPU_CHECK(cudaGetDriverEntryPointByVersion(name, &function, since, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    throw UserError(fmt::format("the CUDA driver is too old: it lacks {} (CUDA {}.{} or newer is needed)",
                                name, since / 1000, since % 1000 / 10));
  }
  return function;
}
#endif

DeviceMemory::DeviceMemory(int device, std::size_t bytes) : device_(device), bytes_(bytes) {
  TRITAX_GPU_CHECK(hipSetDevice(device));
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  TRITAX_GPU_CHECK(hipMemGetInfo(&free_bytes, &total_bytes));
  if (bytes > free_bytes) {
    throw UserError(fmt::format("GPU {}: {:.2f} GB are needed, {:.2f} GB of {:.2f} GB are free", device,
                                static_cast<double>(bytes) * 1e-9, static_cast<double>(free_bytes) * 1e-9,
                                static_cast<double>(total_bytes) * 1e-9));
  }
#if defined(TRITAX_GPU_NVIDIA)
  TRITAX_GPU_CHECK(hipMalloc(&data_, bytes));
#else
  // Peers poll flags and read tiles here while kernels run, and coarse-grained memory does not guarantee
  // visibility.
  TRITAX_GPU_CHECK(hipExtMallocWithFlags(&data_, bytes, hipDeviceMallocFinegrained));
#endif
}

DeviceMemory::~DeviceMemory() {
  if (data_ == nullptr || !owned_) return;
  static_cast<void>(hipSetDevice(device_));
  static_cast<void>(hipFree(data_));
}

}  // namespace tritax::gpu
