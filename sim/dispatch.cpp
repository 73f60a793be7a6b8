#include "sim/dispatch.hpp"

#include <algorithm>
#include <limits>

#include "model/core/error.hpp"

namespace tritax {

Dispatcher::Dispatcher(const Gpu& gpu) : lanes_per_wave_(gpu.lanes_per_wave) {
  empty_.waves_free = gpu.simds_per_cu * gpu.waves_per_simd;
  empty_.registers_free = static_cast<std::int64_t>(gpu.registers_per_cu);
  empty_.lds_free = static_cast<std::int64_t>(gpu.lds_bytes_per_cu);
  for (std::int32_t die = 0; die < gpu.xcds; ++die) {
    const std::int32_t begin = die * gpu.cus_per_xcd;
    dies_.push_back({.full = {}, .begin = begin, .end = begin + gpu.cus_per_xcd, .first_cu = begin});
    ComputeUnit unit = empty_;
    unit.die = die;
    cus_.insert(cus_.end(), static_cast<std::size_t>(gpu.cus_per_xcd), unit);
  }
}

Demand Dispatcher::demand_of(const Kernel& kernel) const {
  const Resources& resources = kernel.resources;
  const std::int32_t waves = (resources.threads + lanes_per_wave_ - 1) / lanes_per_wave_;
  return {waves, std::int64_t{waves} * lanes_per_wave_ * resources.registers_per_thread,
          std::int64_t{resources.lds_bytes}, kernel.cu_begin, kernel.cu_end};
}

std::int32_t Dispatcher::place(std::int32_t number, const Demand& demand) {
  Die& die = dies_[static_cast<std::size_t>(number)];
  if (die.full != demand) {
    const std::int32_t cu = search(die, demand);
    if (cu < 0) {
      die.full = demand;
      die.released = -1;
    }
    return cu;
  }
  const std::int32_t cu = die.released;
  const bool in_range = demand.cu_end <= 0 || (cu >= demand.cu_begin && cu < demand.cu_end);
  if (cu >= 0 && in_range && has_room(cu, demand)) return cu;
  die.released = -1;
  return -1;
}

std::int32_t Dispatcher::search(Die& die, const Demand& demand) const {
  while (die.first_cu < die.end && cus_[static_cast<std::size_t>(die.first_cu)].workgroups > die.fewest) {
    ++die.first_cu;
  }
  if (die.first_cu == die.end) {
    ++die.fewest;
    die.first_cu = die.begin;
  }
  const std::int32_t begin = std::max(die.begin, demand.cu_begin);
  const std::int32_t end = demand.cu_end > 0 ? std::min(die.end, demand.cu_end) : die.end;
  for (std::int32_t cu = std::max(begin, die.first_cu); cu < end; ++cu) {
    const ComputeUnit& unit = cus_[static_cast<std::size_t>(cu)];
    if (unit.workgroups == die.fewest && has_room(unit, demand)) return cu;
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
  Die& die = dies_[static_cast<std::size_t>(unit.die)];
  if (unit.workgroups < die.fewest || (unit.workgroups == die.fewest && cu < die.first_cu)) {
    die.fewest = unit.workgroups;
    die.first_cu = cu;
  }
  if (die.released >= 0 && die.released != cu) die.full.reset();
  die.released = cu;
}

}  // namespace tritax
