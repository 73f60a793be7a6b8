// Max-min rates of the classes that a change can reach.
#include <algorithm>

#include "model/core/error.hpp"
#include "sim/fluid.hpp"

namespace tritax {

namespace {
// More than 64 resources share bits.
std::uint64_t bit_of(std::int32_t slot) { return std::uint64_t{1} << (slot & 63); }
}  // namespace

// Adds a class to the solve and its demand to the resources that it uses.
void FluidNetwork::include(Class& c) {
  c.mark = solve_number_;
  members_.push_back(&c);
  const double rate = c.level * c.settled_weight;
  const std::int32_t open = c.weight > 0;
  for (const Part& part : c.parts()) {
    Resource& r = *part.resource;
    if (idle_at_caps(r)) continue;
    if (r.mark != solve_number_) {
      r.mark = solve_number_;
      r.room = r.capacity - r.load;
      r.demand = 0;
      r.demand_at_caps = 0;
      r.open = 0;
      r.included = 0;
      r.members = 0;
      r.touched_slot = static_cast<std::int32_t>(touched_.size());
      touched_.push_back(&r);
    }
    member_parts_.push_back({r.touched_slot, part.coefficient});
    const double demand = c.weight * part.coefficient;
    r.room += rate * part.coefficient;
    r.demand += demand;
    if (open != 0) r.demand_at_caps += demand * c.cap;
    r.open += open;
    r.included += c.bottleneck == &r ? 1 : 0;
    r.members += c.listed;
  }
  first_part_.push_back(static_cast<std::uint32_t>(member_parts_.size()));
}

// A class that runs at its cap or has its bottleneck elsewhere keeps its rate whatever happens to this
// resource, unless the resource gets too full for that rate (see include_overtaken).
void FluidNetwork::include_held_by_saturated() {
  for (; next_to_expand_ < touched_.size(); ++next_to_expand_) {
    const Resource& r = *touched_[next_to_expand_];
    if (r.load < r.nearly_full || r.holds == r.included) continue;
    // Branchless: the processor cannot predict which users the resource holds back.
    held_.resize(std::max(held_.size(), r.users.size()));
    std::size_t held = 0;
    for (const User& user : r.users) {
      held_[held] = user.of;
      held += (user.of->bottleneck == &r) & (user.of->mark != solve_number_);
    }
    for (std::size_t i = 0; i < held; ++i) include(*held_[i]);
  }
}

// After a solve: a class outside of the solve must not be faster than the classes that a full resource of
// both holds back.
bool FluidNetwork::include_overtaken() {
  const std::size_t before = members_.size();
  for (std::size_t slot = 0; slot < tight_.size(); ++slot) {
    const double level = tight_[slot].level;
    const Resource& r = *touched_[slot];
    if ((level == kInfinity) | (r.users.size() == r.members)) continue;  // all were solved for
    for (const User& user : r.users) {
      if ((user.of->level > level) & (user.of->mark != solve_number_)) include(*user.of);
    }
  }
  return members_.size() != before;
}

// Capacity of the resources for the members. Only a resource that cannot serve all members at their caps can
// hold a class back; true if there is one.
bool FluidNetwork::find_tight() {
  bool any = false;
  tight_.resize(touched_.size());
  for (std::size_t slot = 0; slot < touched_.size(); ++slot) {
    const Resource& r = *touched_[slot];
    const bool is_tight = r.demand_at_caps > r.room * (1 - kTolerance);
    tight_[slot] = {r.room, r.demand, kInfinity, kInfinity, is_tight ? r.open : 0};
    any |= is_tight;
  }
  return any;
}

// Progressive filling: raises all levels together; a class that meets its cap or a full resource stays there.
void FluidNetwork::fill() {
  const bool any_tight = find_tight();
  levels_.resize(std::max(levels_.size(), members_.size()));
  bottlenecks_.resize(levels_.size());
  open_.clear();
  next_cap_ = kInfinity;
  for (std::uint32_t m = 0; m < members_.size(); ++m) {
    const Class& c = *members_[m];
    levels_[m] = c.weight > 0 ? c.cap : 0;
    bottlenecks_[m] = nullptr;
    if (!any_tight || c.weight <= 0) continue;
    std::uint64_t parts = 0;
    for (std::uint32_t p = first_part_[m]; p < first_part_[m + 1]; ++p) {
      parts |= bit_of(member_parts_[p].slot);
    }
    open_.push_back({c.cap, c.weight, parts, m});
    next_cap_ = std::min(next_cap_, c.cap);
  }
  while (!open_.empty()) fill_round();
}

// Raises the levels of the open classes to the next cap or full resource and closes the classes that met it.
// Decides by the state before the round, so the order of the classes does not matter.
void FluidNetwork::fill_round() {
  double level = next_cap_;
  for (Tight& t : tight_) {
    t.fills_at = t.open > 0 ? std::max(t.room, 0.0) / t.demand : kInfinity;
    level = std::min(level, t.fills_at);
  }
  TRITAX_ASSERT(level < kInfinity, "a class without cap and without resource cannot be filled");
  const double reached = level * (1 + kTolerance);
  std::uint64_t any_full = 0;
  for (std::size_t slot = 0; slot < tight_.size(); ++slot) {
    any_full |= tight_[slot].fills_at <= reached ? bit_of(static_cast<std::int32_t>(slot)) : 0;
  }
  next_cap_ = kInfinity;
  std::size_t still_open = 0;
  for (const Open& open : open_) {
    const bool at_cap = open.cap <= reached;
    if (at_cap | ((open.parts & any_full) != 0)) {
      const std::int32_t full = at_cap ? kNone : full_slot(open.member, reached);
      if (full != kNone) tight_[full].level = level;
      if (at_cap | (full != kNone)) {
        close(open, at_cap ? open.cap : level, full == kNone ? nullptr : touched_[full]);
        continue;
      }  // else another resource has the same bit
    }
    next_cap_ = std::min(next_cap_, open.cap);
    open_[still_open++] = open;
  }
  open_.resize(still_open);
}

// The first resource of a member that is full once levels have `reached` this, as a slot of tight_.
std::int32_t FluidNetwork::full_slot(std::uint32_t member, double reached) const {
  for (std::uint32_t p = first_part_[member]; p < first_part_[member + 1]; ++p) {
    if (tight_[member_parts_[p].slot].fills_at <= reached) return member_parts_[p].slot;
  }
  return kNone;
}

// Fixes the level of a member and takes it off its resources.
void FluidNetwork::close(const Open& open, double level, Resource* bottleneck) {
  levels_[open.member] = level;
  bottlenecks_[open.member] = bottleneck;
  for (std::uint32_t p = first_part_[open.member]; p < first_part_[open.member + 1]; ++p) {
    Tight& t = tight_[member_parts_[p].slot];
    t.room -= level * open.weight * member_parts_[p].coefficient;
    t.demand -= open.weight * member_parts_[p].coefficient;
    --t.open;
  }
}

void FluidNetwork::apply(double now_ns) {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    Class& c = *members_[m];
    const double before = c.level * c.settled_weight;
    const double after = levels_[m] * c.weight;
    if (before != after) {
      for (const Part& part : c.parts()) part.resource->change_load((after - before) * part.coefficient);
    }
    commit(c, levels_[m], bottlenecks_[m], now_ns);
  }
}

// Solves for the changed classes and all classes that they reach.
void FluidNetwork::solve(double now_ns) {
  solve_number_ = (solve_number_ + 1) & 0x7fffffffu;
  members_.clear();
  touched_.clear();
  member_parts_.clear();
  first_part_.assign(1, 0);
  next_to_expand_ = 0;
  for (Class* const c : changed_) include(*c);
  do {
    include_held_by_saturated();
    fill();
  } while (include_overtaken());
  apply(now_ns);
}

}  // namespace tritax
