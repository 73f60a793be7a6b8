#include "sim/dispatch.hpp"

#include <algorithm>
#include <limits>

#include "model/core/error.hpp"
#include "model/schedule/shader_engines.hpp"

namespace tritax {

Dispatcher::Dispatcher(const Gpu& gpu)
    : turns_(engine_turns(gpu)), engines_(gpu.shader_engines), lanes_per_wave_(gpu.lanes_per_wave) {
  empty_.waves_free = gpu.simds_per_cu * gpu.waves_per_simd;
  empty_.registers_free = static_cast<std::int64_t>(gpu.registers_per_cu);
  empty_.lds_free = static_cast<std::int64_t>(gpu.lds_bytes_per_cu);
  for (std::int32_t die = 0; die < gpu.xcds; ++die) {
    const std::int32_t first = die * gpu.cus_per_xcd;
    dies_.push_back({.full = {}, .begin = first, .end = first + gpu.cus_per_xcd, .first_cu = first});
    for (std::int32_t engine = 0; engine < engines_; ++engine) {
      const std::int32_t begin = first + engine_begin(gpu, engine);
      const std::int32_t end = first + engine_begin(gpu, engine + 1);
      ComputeUnit unit = empty_;
      unit.die = die;
      unit.engine = static_cast<std::int32_t>(shader_engines_.size());
      shader_engines_.push_back({.full = {}, .begin = begin, .end = end, .first_cu = begin});
      cus_.insert(cus_.end(), static_cast<std::size_t>(end - begin), unit);
    }
  }
}

Demand Dispatcher::demand_of(const Kernel& kernel) const {
  const Resources& resources = kernel.resources;
  const std::int32_t waves = (resources.threads + lanes_per_wave_ - 1) / lanes_per_wave_;
  return {waves,
          std::int64_t{waves} * lanes_per_wave_ * resources.registers_per_thread,
          std::int64_t{resources.lds_bytes},
          kernel.cu_begin,
          kernel.cu_end,
          goes_in_turn(kernel)};
}

std::int32_t Dispatcher::place(Group& group, const Demand& demand) {
  if (group.full != demand) {
    const std::int32_t cu = search(group, demand);
    if (cu < 0) {
      group.full = demand;
      group.released = -1;
    }
    return cu;
  }
  const std::int32_t cu = group.released;
  const bool in_range = demand.cu_end <= 0 || (cu >= demand.cu_begin && cu < demand.cu_end);
  if (cu >= 0 && in_range && has_room(cu, demand)) return cu;
  group.released = -1;
  return -1;
}

std::int32_t Dispatcher::search(Group& group, const Demand& demand) const {
  while (group.first_cu < group.end &&
         cus_[static_cast<std::size_t>(group.first_cu)].workgroups > group.fewest) {
    ++group.first_cu;
  }
  if (group.first_cu == group.end) {
    ++group.fewest;
    group.first_cu = group.begin;
  }
  const std::int32_t begin = std::max(group.begin, demand.cu_begin);
  const std::int32_t end = demand.cu_end > 0 ? std::min(group.end, demand.cu_end) : group.end;
  for (std::int32_t cu = std::max(begin, group.first_cu); cu < end; ++cu) {
    const ComputeUnit& unit = cus_[static_cast<std::size_t>(cu)];
    if (unit.workgroups == group.fewest && has_room(unit, demand)) return cu;
  }
  std::int32_t best = -1;
  std::int32_t fewest = std::numeric_limits<std::int32_t>::max();
  for (std::int32_t cu = begin; cu < end; ++cu) {
    const ComputeUnit& unit = cus_[static_cast<std::size_t>(cu)];
    if (unit.workgroups >= fewest || !has_room(unit, demand)) continue;
    best = cu;
    fewest = unit.workgroups;
  }
  return best;
}

void Dispatcher::take(std::int32_t cu, const Demand& demand) {
  ComputeUnit& unit = cus_[cu];
  TRITAX_ASSERT(has_room(unit, demand), "a workgroup was sent to a full compute unit");
  unit.waves_free -= demand.waves;
  unit.registers_free -= demand.registers;
  unit.lds_free -= demand.lds;
  ++unit.workgroups;
}

void Dispatcher::release(std::int32_t cu, const Demand& demand) {
  ComputeUnit& unit = cus_[cu];
  unit.waves_free += demand.waves;
  unit.registers_free += demand.registers;
  unit.lds_free += demand.lds;
  --unit.workgroups;
  note_release(dies_[static_cast<std::size_t>(unit.die)], cu, unit.workgroups);
  if (engines_ > 1) {
    note_release(shader_engines_[static_cast<std::size_t>(unit.engine)], cu, unit.workgroups);
  }
}

// A workgroup of compute unit `cu` has ended; `workgroups` remain on it.
void Dispatcher::note_release(Group& group, std::int32_t cu, std::int32_t workgroups) {
  if (workgroups < group.fewest || (workgroups == group.fewest && cu < group.first_cu)) {
    group.fewest = workgroups;
    group.first_cu = cu;
  }
  if (group.released >= 0 && group.released != cu) group.full.reset();
  group.released = cu;
}

}  // namespace tritax
