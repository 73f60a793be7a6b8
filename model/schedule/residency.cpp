#include "model/schedule/residency.hpp"

#include <algorithm>

namespace tritax {

std::int64_t waves_of(const Gpu& gpu, const Resources& resources) {
  return (std::int64_t{resources.threads} + gpu.lanes_per_wave - 1) / gpu.lanes_per_wave;
}

std::int64_t registers_of(const Gpu& gpu, const Resources& resources) {
  return waves_of(gpu, resources) * gpu.lanes_per_wave * resources.registers_per_thread;
}

ResidentWorkgroups::ResidentWorkgroups(const Gpu& gpu) : gpu_(gpu) {
  ComputeUnit empty;
  empty.waves_free = std::int64_t{gpu.simds_per_cu} * gpu.waves_per_simd;
  empty.registers_free = static_cast<std::int64_t>(gpu.registers_per_cu);
  empty.lds_bytes_free = static_cast<std::int64_t>(gpu.lds_bytes_per_cu);
  cus_.assign(static_cast<std::size_t>(gpu.cu_count()), empty);
}

std::uint64_t ResidentWorkgroups::add(const Kernel& kernel, std::uint64_t limit) {
  const std::int32_t begin = kernel.cu_begin;
  const std::int32_t end = kernel.cu_end > 0 ? kernel.cu_end : gpu_.cu_count();
  const std::int32_t first_die = begin / gpu_.cus_per_xcd;
  const std::int32_t dies = (end - 1) / gpu_.cus_per_xcd - first_die + 1;
  std::vector<char> full(static_cast<std::size_t>(dies), 0);
  std::int32_t dies_full = 0;
  std::uint64_t placed = 0;
  for (std::uint64_t w = 0; w < limit && dies_full < dies; ++w) {
    const auto die = static_cast<std::int32_t>(w % static_cast<std::uint64_t>(dies));
    if (full[static_cast<std::size_t>(die)] != 0) {
      continue;  // a full die is not helped by the others
    }
    if (add_to_die(kernel, first_die + die)) {
      ++placed;
    } else {
      full[static_cast<std::size_t>(die)] = 1;
      ++dies_full;
    }
  }
  return placed;
}

bool ResidentWorkgroups::add_to_die(const Kernel& kernel, std::int32_t die) {
  const std::int32_t range_end = kernel.cu_end > 0 ? kernel.cu_end : gpu_.cu_count();
  const std::int32_t begin = std::max(die * gpu_.cus_per_xcd, kernel.cu_begin);
  const std::int32_t end = std::min((die + 1) * gpu_.cus_per_xcd, range_end);
  const std::int64_t waves = waves_of(gpu_, kernel.resources);
  const std::int64_t registers = registers_of(gpu_, kernel.resources);
  ComputeUnit* best = nullptr;
  for (std::int32_t i = begin; i < end; ++i) {
    ComputeUnit& cu = cus_[static_cast<std::size_t>(i)];
    const bool room = cu.waves_free >= waves && cu.registers_free >= registers &&
                      cu.lds_bytes_free >= kernel.resources.lds_bytes;
    if (room && (best == nullptr || cu.workgroups < best->workgroups)) {
      best = &cu;
    }
  }
  if (best == nullptr) {
    return false;
  }
  best->waves_free -= waves;
  best->registers_free -= registers;
  best->lds_bytes_free -= kernel.resources.lds_bytes;
  ++best->workgroups;
  return true;
}

}  // namespace tritax
