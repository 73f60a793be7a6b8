// Owners of objects of the GPU runtime. Each frees its object on the device of its creation.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "backend_hip/gpu_api.hpp"

namespace tritax::gpu {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(int device, std::size_t bytes);  // throws UserError when there is not enough
  // Memory that another object owns.
  DeviceMemory(int device, void* data, std::size_t bytes)
      : device_(device), data_(data), bytes_(bytes), owned_(false) {}
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(other.device_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_),
        owned_(other.owned_) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(owned_, other.owned_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory();

  void* get() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  int device_ = 0;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool owned_ = true;
};

// A copy of host records on a device.
template <class T>
DeviceMemory upload(int device, const std::vector<T>& records) {
  DeviceMemory memory(device, records.size() * sizeof(T) + 1);
  if (!records.empty()) {
    TRITAX_GPU_CHECK(
        hipMemcpy(memory.get(), records.data(), records.size() * sizeof(T), hipMemcpyHostToDevice));
  }
  return memory;
}

// The records that fit into `memory`.
template <class T>
std::vector<T> download(const DeviceMemory& memory) {
  std::vector<T> records(memory.bytes() / sizeof(T));
  if (!records.empty()) {
    TRITAX_GPU_CHECK(
        hipMemcpy(records.data(), memory.get(), records.size() * sizeof(T), hipMemcpyDeviceToHost));
  }
  return records;
}

// One zeroed record in host memory that every GPU can reach.
template <class T>
class MappedHost {
 public:
  MappedHost() {
    void* memory = nullptr;
    TRITAX_GPU_CHECK(hipHostMalloc(&memory, sizeof(T), hipHostMallocMapped | hipHostMallocPortable));
    data_ = new (memory) T();
  }
  ~MappedHost() { static_cast<void>(hipHostFree(data_)); }
  MappedHost(const MappedHost&) = delete;
  MappedHost& operator=(const MappedHost&) = delete;
  T* get() const { return data_; }
  T* operator->() const { return data_; }

 private:
  T* data_ = nullptr;
};

}  // namespace tritax::gpu
