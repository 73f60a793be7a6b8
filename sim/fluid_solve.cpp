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
void FluidNetwork::include(std::int32_t id) {
  Class& c = classes_[id];
  c.mark = solve_number_;
  members_.push_back(id);
  const double rate = c.level * c.settled_weight;
  const std::int32_t open = c.weight > 0;
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    const Use& use = c.uses[i];
    Resource& r = resources_[use.resource];
    if (idle_at_caps(r)) continue;
    if (r.mark != solve_number_) {
      r.mark = solve_number_;
      r.room = r.capacity - r.load;
      r.demand = 0;
      r.demand_at_caps = 0;
      r.open = 0;
      r.included = 0;
      r.touched_slot = static_cast<std::int32_t>(touched_.size());
      touched_.push_back(use.resource);
    }
    member_uses_.push_back({r.touched_slot, use.coefficient});
    const double demand = c.weight * use.coefficient;
    r.room += rate * use.coefficient;
    r.demand += demand;
    if (open != 0) r.demand_at_caps += demand * c.cap;
    r.open += open;
    r.included += c.bottleneck == use.resource ? 1 : 0;
  }
  first_use_.push_back(static_cast<std::uint32_t>(member_uses_.size()));
}

// A class that runs at its cap or has its bottleneck elsewhere keeps its rate whatever happens to this
// resource, unless the resource gets so full that it cannot (see include_overtaken).
void FluidNetwork::include_held_by_saturated() {
  for (; next_to_expand_ < touched_.size(); ++next_to_expand_) {
    const std::int32_t id = touched_[next_to_expand_];
    const Resource& r = resources_[id];
    if (r.load < r.nearly_full || r.holds == r.included) continue;
    for (const std::int32_t user : r.users) {
      if (classes_[user].bottleneck == id && classes_[user].mark != solve_number_) include(user);
    }
  }
}

// After a solve: a class that was not solved for must not be faster than the classes that a full resource of
// both holds back.
bool FluidNetwork::include_overtaken() {
  const std::size_t before = members_.size();
  for (const Tight& tight : tight_) {
    if (tight.level == kInfinity) continue;
    for (const std::int32_t user : resources_[tight.resource].users) {
      if (classes_[user].level > tight.level && classes_[user].mark != solve_number_) include(user);
    }
  }
  return members_.size() != before;
}

void FluidNetwork::find_tight() {
  tight_.clear();
  tight_slot_.clear();
  for (const std::int32_t t : touched_) {
    const Resource& r = resources_[t];
    const bool is_tight = r.demand_at_caps > r.room * (1 - kTolerance);
    tight_slot_.push_back(is_tight ? static_cast<std::int32_t>(tight_.size()) : kNone);
    if (is_tight) tight_.push_back({r.room, r.demand, kInfinity, r.open, t, false});
  }
}

// Progressive filling: raise all levels together; whoever meets its cap or a full resource stays there.
void FluidNetwork::fill() {
  find_tight();
  levels_.resize(std::max(levels_.size(), members_.size()));
  bottlenecks_.resize(levels_.size());
  open_.clear();
  tight_uses_.clear();
  first_tight_use_.clear();
  next_cap_ = kInfinity;
  for (std::uint32_t m = 0; m < members_.size(); ++m) {
    const Class& c = classes_[members_[m]];
    levels_[m] = 0;
    bottlenecks_[m] = kNone;
    first_tight_use_.push_back(static_cast<std::uint32_t>(tight_uses_.size()));
    if (c.weight <= 0) continue;
    if (tight_.empty()) {
      levels_[m] = c.cap;
      continue;
    }
    std::uint64_t tight = 0;
    for (std::uint32_t u = first_use_[m]; u < first_use_[m + 1]; ++u) {
      const std::int32_t slot = tight_slot_[member_uses_[u].resource];
      if (slot == kNone) continue;
      tight |= bit_of(slot);
      tight_uses_.push_back({slot, member_uses_[u].coefficient});
    }
    open_.push_back({c.cap, tight, m});
    next_cap_ = std::min(next_cap_, c.cap);
  }
  first_tight_use_.push_back(static_cast<std::uint32_t>(tight_uses_.size()));
  while (!open_.empty()) fill_round();
}

// Raises the levels of the open classes to the next cap or full resource and closes whoever met it. Decides
// against the state before the round, so that the order of the classes does not matter.
void FluidNetwork::fill_round() {
  double level = next_cap_;
  for (const Tight& t : tight_) {
    if (t.open > 0) level = std::min(level, std::max(t.room, 0.0) / t.demand);
  }
  TRITAX_ASSERT(level < kInfinity, "a class without cap and without resource cannot be filled");
  const double reached = level * (1 + kTolerance);
  std::uint64_t any_full = 0;
  for (std::size_t slot = 0; slot < tight_.size(); ++slot) {
    Tight& t = tight_[slot];
    t.full = t.open > 0 && std::max(t.room, 0.0) / t.demand <= reached;
    if (t.full) any_full |= bit_of(static_cast<std::int32_t>(slot));
  }
  double next_cap = kInfinity;
  std::size_t still_open = 0;
  for (const Open& open : open_) {
    const bool at_cap = open.cap <= reached;
    if (!(at_cap | ((open.tight & any_full) != 0))) {
      next_cap = std::min(next_cap, open.cap);
      open_[still_open++] = open;
      continue;
    }
    const auto begin = tight_uses_.begin() + first_tight_use_[open.member];
    const auto end = tight_uses_.begin() + first_tight_use_[open.member + 1];
    const auto full = std::find_if(begin, end, [&](const Use& use) { return tight_[use.resource].full; });
    if (at_cap) {
      close(open.member, open.cap, kNone);
    } else if (full != end) {
      tight_[full->resource].level = level;
      close(open.member, level, tight_[full->resource].resource);
    } else {  // another resource has the same bit
      next_cap = std::min(next_cap, open.cap);
      open_[still_open++] = open;
    }
  }
  open_.resize(still_open);
  next_cap_ = next_cap;
}

// Fixes the level of a member and takes it off the tight resources.
void FluidNetwork::close(std::uint32_t member, double level, std::int32_t bottleneck) {
  levels_[member] = level;
  bottlenecks_[member] = bottleneck;
  const double weight = classes_[members_[member]].weight;
  for (std::uint32_t u = first_tight_use_[member]; u < first_tight_use_[member + 1]; ++u) {
    Tight& t = tight_[tight_uses_[u].resource];
    t.room -= level * weight * tight_uses_[u].coefficient;
    t.demand -= weight * tight_uses_[u].coefficient;
    --t.open;
  }
}

void FluidNetwork::apply(double now_ns) {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const Class& c = classes_[members_[m]];
    const double before = c.level * c.settled_weight;
    const double after = levels_[m] * c.weight;
    if (before != after) {
      for (std::int32_t i = 0; i < c.use_count; ++i) {
        change_load(c.uses[i].resource, (after - before) * c.uses[i].coefficient);
      }
    }
    commit(members_[m], levels_[m], bottlenecks_[m], now_ns);
  }
}

// Solves for the changed classes and all that they reach.
void FluidNetwork::solve(double now_ns) {
  ++solves_;
  solve_number_ = (solve_number_ + 1) & 0x7fffffffu;
  members_.clear();
  touched_.clear();
  member_uses_.clear();
  first_use_.assign(1, 0);
  next_to_expand_ = 0;
  for (const std::int32_t id : changed_) include(id);
  do {
    include_held_by_saturated();
    fill();
  } while (include_overtaken());
  apply(now_ns);
}

}  // namespace tritax
