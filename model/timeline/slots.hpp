// Workgroups that share a compute unit at the same time, in slots, so that no track of a drawn timeline
// overlaps itself: the first on a compute unit has slot 0, who comes while it is there slot 1, and so on.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "model/timeline/timeline.hpp"

namespace tritax {

class Slots {
 public:
  explicit Slots(const Timeline& timeline);

  int slot_of(const OpInterval& op) const { return slot_of_.at(residency_of(op)); }
  int per_cu() const { return per_cu_; }  // the most that any compute unit needs

 private:
  // Rank, compute unit, kernel, workgroup, launch.
  using Residency = std::tuple<std::int32_t, std::int32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  static Residency residency_of(const OpInterval& op) {
    return {op.place.rank, op.place.cu, op.place.kernel, op.place.workgroup, op.launch};
  }

  std::map<Residency, int> slot_of_;
  int per_cu_ = 1;
};

}  // namespace tritax
