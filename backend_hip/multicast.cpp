#include "backend_hip/multicast.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "backend_hip/gpu_api.hpp"
#include "model/core/error.hpp"

#if defined(TRITAX_GPU_NVIDIA)
#include <cudaTypedefs.h>
#endif

namespace tritax::gpu {

MulticastHeaps::MulticastHeaps(MulticastHeaps&& other) noexcept { *this = std::move(other); }

MulticastHeaps& MulticastHeaps::operator=(MulticastHeaps&& other) noexcept {
  std::swap(gpus_, other.gpus_);
  std::swap(bytes_, other.bytes_);
  std::swap(heaps_, other.heaps_);
  std::swap(all_, other.all_);
  return *this;
}

#if defined(TRITAX_GPU_NVIDIA)

namespace {

constexpr int kSinceMemory = 10020;  // versions of CUDA that brought these functions
constexpr int kSinceMulticast = 12010;

template <class Function>
Function driver(const char* name, int since) {
  return reinterpret_cast<Function>(driver_function(name, static_cast<unsigned int>(since)));
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const std::string_view cause = result == CUDA_ERROR_OUT_OF_MEMORY
                                     ? "a GPU has too little free memory"
                                     : "the GPUs, or the fabric manager of this node, do not allow it";
  throw UserError(
      fmt::format("multicast: {} failed with CUDA error {}: {} (--share-gpus checks results peer by peer)",
                  call, static_cast<int>(result), cause));
}

#define TRITAX_DRIVER(name, since, suffix, ...) \
  check(driver<PFN_##name##_##suffix>(#name, since)(__VA_ARGS__), #name)
#define TRITAX_MEMORY(name, ...) TRITAX_DRIVER(name, kSinceMemory, v10020, __VA_ARGS__)
#define TRITAX_MULTICAST(name, ...) TRITAX_DRIVER(name, kSinceMulticast, v12010, __VA_ARGS__)

// Sites switch multicast off for all programs by the variables of NCCL, PyTorch and NVSHMEM, because a
// program that uses it can harm others on the host. What they forbid those, they forbid this one.
void require_allowed() {
  struct Setting {
    const char* name;
    const char* off;
  };
  for (const Setting& setting :
       {Setting{"NCCL_NVLS_ENABLE", "0"}, Setting{"TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"},
        Setting{"NVSHMEM_DISABLE_NVLS", "1"}}) {
    const char* value = std::getenv(setting.name);
    if (value == nullptr || std::string_view(value) != setting.off) continue;
    throw UserError(fmt::format(
        "multicast: {}={} switches it off on this machine; --share-gpus checks results peer by peer",
        setting.name, setting.off));
  }
}

void require_multicast(int gpu) {
  TRITAX_GPU_CHECK(cudaSetDevice(gpu));
  TRITAX_GPU_CHECK(cudaFree(nullptr));  // creates the context
  int supported = 0;
  TRITAX_DRIVER(cuDeviceGetAttribute, 2000, v2000, &supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, gpu);
  if (supported == 0) {
    throw UserError(fmt::format(
        "multicast: GPU {} has none; operations of the switch need NVIDIA GPUs of compute capability 9.0 or "
        "more behind NVSwitch (--share-gpus checks results peer by peer)",
        gpu));
  }
}

}  // namespace

// Delegates, so that the destructor releases what there is when a call throws.
MulticastHeaps::MulticastHeaps(int gpus, std::size_t bytes) : MulticastHeaps() {
  require_allowed();
  gpus_ = gpus;
  for (int gpu = 0; gpu < gpus; ++gpu) require_multicast(gpu);
  CUmulticastObjectProp properties{};
  properties.numDevices = static_cast<unsigned int>(gpus);
  properties.size = bytes;
  std::size_t granularity = 0;
  TRITAX_MULTICAST(cuMulticastGetGranularity, &granularity, &properties,
                   CU_MULTICAST_GRANULARITY_RECOMMENDED);
  bytes_ = properties.size = (bytes + granularity - 1) / granularity * granularity;
  TRITAX_MULTICAST(cuMulticastCreate, &all_.handle, &properties);
  for (int gpu = 0; gpu < gpus; ++gpu) TRITAX_MULTICAST(cuMulticastAddDevice, all_.handle, gpu);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    CUmemAllocationProp memory{};
    memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
    CUmemGenericAllocationHandle handle = 0;
    TRITAX_MEMORY(cuMemCreate, &handle, bytes_, &memory, 0);
    heaps_.push_back({0, handle});
    TRITAX_MULTICAST(cuMulticastBindMem, all_.handle, 0, handle, 0, bytes_, 0);
    heaps_.back() = map(handle);
  }
  all_ = map(all_.handle);
}

MulticastHeaps::Mapping MulticastHeaps::map(unsigned long long handle) const {
  CUdeviceptr address = 0;
  TRITAX_MEMORY(cuMemAddressReserve, &address, bytes_, 0, 0, 0);
  TRITAX_MEMORY(cuMemMap, address, bytes_, 0, handle, 0);
  std::vector<CUmemAccessDesc> access;
  for (int gpu = 0; gpu < gpus_; ++gpu)
    access.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  TRITAX_MEMORY(cuMemSetAccess, address, bytes_, access.data(), access.size());
  return {address, handle};
}

MulticastHeaps::~MulticastHeaps() {
  if (gpus_ == 0) return;
  heaps_.push_back(all_);
  for (const Mapping& mapping : heaps_) {
    if (mapping.address != 0) {
      static_cast<void>(driver<PFN_cuMemUnmap_v10020>("cuMemUnmap", kSinceMemory)(mapping.address, bytes_));
      static_cast<void>(
          driver<PFN_cuMemAddressFree_v10020>("cuMemAddressFree", kSinceMemory)(mapping.address, bytes_));
    }
    if (mapping.handle != 0)
      static_cast<void>(driver<PFN_cuMemRelease_v10020>("cuMemRelease", kSinceMemory)(mapping.handle));
  }
}

#else

MulticastHeaps::MulticastHeaps(int, std::size_t) {
  throw UserError("multicast: no switch between AMD GPUs stores to all or adds up; use push or pull");
}

MulticastHeaps::Mapping MulticastHeaps::map(unsigned long long) const { return {}; }

MulticastHeaps::~MulticastHeaps() = default;

#endif

}  // namespace tritax::gpu
