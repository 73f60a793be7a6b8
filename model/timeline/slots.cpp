#include "model/timeline/slots.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tritax {

Slots::Slots(const Timeline& timeline) {
  std::map<Residency, std::pair<double, double>> spans;
  std::vector<Residency> in_order;
  for (const OpInterval& op : timeline.ops) {
    const Residency residency = residency_of(op);
    const auto [at, is_new] = spans.try_emplace(residency, op.begin_ns, op.end_ns);
    at->second.second = std::max(at->second.second, op.end_ns);
    if (is_new) {
      in_order.push_back(residency);
    }
  }
  std::map<std::pair<int, int>, std::vector<double>> free_from;  // by rank, CU: when each slot is free
  for (const Residency& residency : in_order) {
    const auto [begin, end] = spans[residency];
    auto& slots = free_from[{std::get<0>(residency), std::get<1>(residency)}];
    auto slot = std::find_if(slots.begin(), slots.end(), [b = begin](double free) { return free <= b; });
    if (slot == slots.end()) {
      slot = slots.insert(slots.end(), 0.0);
    }
    *slot = end;
    slot_of_[residency] = static_cast<int>(slot - slots.begin());
    per_cu_ = std::max(per_cu_, static_cast<int>(slots.size()));
  }
}

}  // namespace tritax
