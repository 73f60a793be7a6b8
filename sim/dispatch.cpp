#include "sim/dispatch.hpp"

#include <algorithm>
#include <limits>

#include "model/core/error.hpp"

namespace tritax {

Dispatcher::Dispatcher(const Gpu& gpu) : cus_per_die_(gpu.cus_per_xcd), lanes_per_wave_(gpu.lanes_per_wave) {
  empty_.waves_free = gpu.simds_per_cu * gpu.waves_per_simd;
  empty_.registers_free = static_cast<std::int64_t>(gpu.registers_per_cu);
  empty_.lds_free = static_cast<std::int64_t>(gpu.lds_bytes_per_cu);
  cus_.assign(static_cast<std::size_t>(gpu.cu_count()), empty_);
  full_.resize(static_cast<std::size_t>(gpu.xcds));
}

Dispatcher::Needs Dispatcher::needs_of(const Kernel& kernel) const {
  const Resources& resources = kernel.resources;
  const std::int32_t waves = (resources.threads + lanes_per_wave_ - 1) / lanes_per_wave_;
  return {waves, std::int64_t{waves} * lanes_per_wave_ * resources.registers_per_thread,
          std::int64_t{resources.lds_bytes}};
}

bool Dispatcher::fits(const Kernel& kernel) const { return has_room(empty_, needs_of(kernel)); }

std::int32_t Dispatcher::place(std::int32_t die, const Kernel& kernel) {
  Full& full = full_[static_cast<std::size_t>(die)];
  const Demand demand{kernel.resources, kernel.cu_begin, kernel.cu_end};
  if (full.demand != demand) {
    const std::int32_t cu = search(die, kernel);
    if (cu < 0) full = {demand, -1};
    return cu;
  }
  const std::int32_t cu = full.released;
  const bool in_range = kernel.cu_end <= 0 || (cu >= kernel.cu_begin && cu < kernel.cu_end);
  if (cu >= 0 && in_range && has_room(cu, kernel)) return cu;
  full.released = -1;
  return -1;
}

std::int32_t Dispatcher::search(std::int32_t die, const Kernel& kernel) const {
  const std::int32_t first = die * cus_per_die_;
  std::int32_t begin = first;
  std::int32_t end = first + cus_per_die_;
  if (kernel.cu_end > 0) {
    begin = std::max(begin, kernel.cu_begin);
    end = std::min(end, kernel.cu_end);
  }
  const Needs needs = needs_of(kernel);
  std::int32_t best = -1;
  std::int32_t fewest = std::numeric_limits<std::int32_t>::max();
  for (std::int32_t cu = begin; cu < end && fewest > 0; ++cu) {
    const ComputeUnit& unit = cus_[static_cast<std::size_t>(cu)];
    if (unit.workgroups >= fewest || !has_room(unit, needs)) continue;
    best = cu;
    fewest = unit.workgroups;
  }
  return best;
}

void Dispatcher::take(std::int32_t cu, const Kernel& kernel) {
  ComputeUnit& unit = cus_[cu];
  const Needs needs = needs_of(kernel);
  TRITAX_ASSERT(has_room(unit, needs), "a workgroup was sent to a full compute unit");
  unit.waves_free -= needs.waves;
  unit.registers_free -= needs.registers;
  unit.lds_free -= needs.lds;
  ++unit.workgroups;
}

void Dispatcher::release(std::int32_t cu, const Kernel& kernel) {
  ComputeUnit& unit = cus_[cu];
  const Needs needs = needs_of(kernel);
  unit.waves_free += needs.waves;
  unit.registers_free += needs.registers;
  unit.lds_free += needs.lds;
  --unit.workgroups;
  Full& full = full_[static_cast<std::size_t>(die_of(cu))];
  if (full.released >= 0 && full.released != cu) full.demand.reset();
  full.released = cu;
}

}  // namespace tritax
