// The kernel profile says how a kernel is written. The costs of the kernel besides moving bytes and
// multiplying follow from its profile (model/cost/kernel_costs.hpp). One schedule may mix profiles.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tritax {

enum class KernelProfile : std::uint8_t {
  interpreter,  // this project's kernels, which read the schedule while they run
  triton,       // compiled by Triton for one workload
  vendor,       // of a vendor's library (cuBLAS, hipBLASLt, NCCL, RCCL), or of a framework beside it
  mma_sync,     // this project's kernels for attention: each wave multiplies, weighs and reads LDS in turn
};
inline constexpr int kKernelProfileCount = 4;
inline constexpr std::array<std::string_view, kKernelProfileCount> kKernelProfileNames{
    "interpreter", "triton", "vendor", "mma-sync"};

}  // namespace tritax
