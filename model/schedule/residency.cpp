#include "model/schedule/residency.hpp"

#include <algorithm>

namespace tritax {

namespace {

std::int32_t end_of_units(const Gpu& gpu, const Kernel& kernel) {
  return kernel.cu_end > 0 ? kernel.cu_end : gpu.cu_count();
}

}  // namespace

std::int64_t waves_of(const Gpu& gpu, const Resources& resources) {
  return (std::int64_t{resources.threads} + gpu.lanes_per_wave - 1) / gpu.lanes_per_wave;
}

std::int64_t registers_of(const Gpu& gpu, const Resources& resources) {
  return waves_of(gpu, resources) * gpu.lanes_per_wave * resources.registers_per_thread;
}

bool share_a_unit(const Gpu& gpu, const Resources& a, const Resources& b) {
  return waves_of(gpu, a) + waves_of(gpu, b) <= std::int64_t{gpu.simds_per_cu} * gpu.waves_per_simd &&
         registers_of(gpu, a) + registers_of(gpu, b) <= static_cast<std::int64_t>(gpu.registers_per_cu) &&
         std::int64_t{a.lds_bytes} + b.lds_bytes <= static_cast<std::int64_t>(gpu.lds_bytes_per_cu);
}

Dies dies_of(const Gpu& gpu, const Kernel& kernel) {
  const std::int32_t first = kernel.cu_begin / gpu.cus_per_xcd;
  return {first, (end_of_units(gpu, kernel) - 1) / gpu.cus_per_xcd - first + 1};
}

bool fits_wherever(const Gpu& gpu, const Kernel& one, const Kernel& other) {
  return waves_of(gpu, one.resources) <= waves_of(gpu, other.resources) &&
         registers_of(gpu, one.resources) <= registers_of(gpu, other.resources) &&
         one.resources.lds_bytes <= other.resources.lds_bytes && one.cu_begin <= other.cu_begin &&
         end_of_units(gpu, one) >= end_of_units(gpu, other);
}

ResidentWorkgroups::ResidentWorkgroups(const Gpu& gpu) : gpu_(gpu) {
  ComputeUnit empty;
  empty.waves_free = std::int64_t{gpu.simds_per_cu} * gpu.waves_per_simd;
  empty.registers_free = static_cast<std::int64_t>(gpu.registers_per_cu);
  empty.lds_bytes_free = static_cast<std::int64_t>(gpu.lds_bytes_per_cu);
  cus_.assign(static_cast<std::size_t>(gpu.cu_count()), empty);
}

std::uint64_t ResidentWorkgroups::add(const Kernel& kernel, std::uint64_t limit) {
  const auto dies = static_cast<std::uint64_t>(dies_of(gpu_, kernel).count);
  std::vector<char> full(dies, 0);
  std::uint64_t dies_full = 0;
  std::uint64_t placed = 0;
  for (std::uint64_t w = 0; w < limit && dies_full < dies; ++w) {
    if (full[w % dies] != 0) {
      continue;  // room on other dies does not help a full die
    }
    if (add_workgroup(kernel, w)) {
      ++placed;
    } else {
      full[w % dies] = 1;
      ++dies_full;
    }
  }
  return placed;
}

bool ResidentWorkgroups::add_workgroup(const Kernel& kernel, std::uint64_t workgroup) {
  const std::optional<std::size_t> room = find_room(kernel, workgroup);
  if (room) {
    ComputeUnit& cu = cus_[*room];
    cu.waves_free -= waves_of(gpu_, kernel.resources);
    cu.registers_free -= registers_of(gpu_, kernel.resources);
    cu.lds_bytes_free -= kernel.resources.lds_bytes;
    ++cu.workgroups;
  }
  return room.has_value();
}

bool ResidentWorkgroups::has_room(const Kernel& kernel, std::uint64_t workgroup) const {
  return find_room(kernel, workgroup).has_value();
}

std::optional<std::size_t> ResidentWorkgroups::find_room(const Kernel& kernel,
                                                         std::uint64_t workgroup) const {
  const Dies dies = dies_of(gpu_, kernel);
  const auto die = dies.first + static_cast<std::int32_t>(workgroup % static_cast<std::uint64_t>(dies.count));
  const std::int32_t begin = std::max(die * gpu_.cus_per_xcd, kernel.cu_begin);
  const std::int32_t end = std::min((die + 1) * gpu_.cus_per_xcd, end_of_units(gpu_, kernel));
  const std::int64_t waves = waves_of(gpu_, kernel.resources);
  const std::int64_t registers = registers_of(gpu_, kernel.resources);
  std::optional<std::size_t> best;
  for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
    const ComputeUnit& cu = cus_[i];
    const bool room = cu.waves_free >= waves && cu.registers_free >= registers &&
                      cu.lds_bytes_free >= kernel.resources.lds_bytes;
    if (room && (!best || cu.workgroups < cus_[*best].workgroups)) {
      best = i;
    }
  }
  return best;
}

}  // namespace tritax
