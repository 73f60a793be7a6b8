// Heaps of all GPUs behind one multicast address (CUDA driver API, "Multicast Object Management"): the switch
// delivers what is stored there to the same place of every heap, and adds up what is loaded there. AMD's GPUs
// have no such switch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tritax::gpu {

class MulticastHeaps {
 public:
  MulticastHeaps() = default;
  // A heap of `bytes` bytes on each of the first `gpus` GPUs, which all GPUs reach. Throws UserError where a
  // GPU has no multicast, or the system does not allow it, or NCCL_NVLS_ENABLE=0 and the like switch it off.
  MulticastHeaps(int gpus, std::size_t bytes);
  MulticastHeaps(MulticastHeaps&& other) noexcept;
  MulticastHeaps& operator=(MulticastHeaps&& other) noexcept;
  ~MulticastHeaps();

  void* heap(int gpu) const { return reinterpret_cast<void*>(heaps_[static_cast<std::size_t>(gpu)].address); }
  // The multicast address of the start of all heaps; 0: there are none.
  std::uint64_t address() const { return all_.address; }

 private:
  struct Mapping {
    std::uint64_t address = 0;
    unsigned long long handle = 0;  // CUmemGenericAllocationHandle
  };

  Mapping map(unsigned long long handle) const;

  int gpus_ = 0;
  std::size_t bytes_ = 0;  // of a heap, a multiple of the granularity
  std::vector<Mapping> heaps_;
  Mapping all_;
};

}  // namespace tritax::gpu
