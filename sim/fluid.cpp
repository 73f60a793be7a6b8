#include "sim/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/core/error.hpp"

namespace tritax {

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Loads are sums of up to a few hundred rates; a resource counts as saturated within this relative distance.
constexpr double kTolerance = 1e-9;
}  // namespace

std::int32_t FluidNetwork::add_resource(double capacity_per_ns) {
  TRITAX_ASSERT(capacity_per_ns > 0, "a resource needs a positive capacity");
  Resource resource;
  resource.capacity = capacity_per_ns;
  resources_.push_back(std::move(resource));
  return static_cast<std::int32_t>(resources_.size()) - 1;
}

std::int32_t FluidNetwork::add_class(std::span<const Use> uses, double cap) {
  TRITAX_ASSERT(cap > 0, "a class needs a positive cap");
  Class c;
  c.cap = cap;
  for (const Use& use : uses) {
    if (use.coefficient == 0) continue;
    TRITAX_ASSERT(use.coefficient > 0, "a class cannot relieve a resource");
    const auto begin = c.uses.begin();
    const auto end = begin + c.use_count;
    const auto same = std::find_if(begin, end, [&](const Use& u) { return u.resource == use.resource; });
    if (same != end) {
      same->coefficient += use.coefficient;
      continue;
    }
    TRITAX_ASSERT(c.use_count < kMaxUses, "too many resources in one class");
    c.uses[static_cast<std::size_t>(c.use_count++)] = use;
  }
  TRITAX_ASSERT(c.use_count > 0 || cap < kInfinity, "a class without resources needs a finite cap");
  classes_.push_back(std::move(c));
  return static_cast<std::int32_t>(classes_.size()) - 1;
}

void FluidNetwork::set_cap(std::int32_t class_id, double cap) {
  Class& c = classes_[class_id];
  if (c.cap == cap) return;
  c.cap = cap;
  if (!c.ends.empty()) mark_changed(class_id);
}

void FluidNetwork::advance(Class& c, double now_ns) {
  if (now_ns > c.since_ns) {
    c.virtual_time += c.level * (now_ns - c.since_ns);
    c.since_ns = now_ns;
  }
}

void FluidNetwork::list(std::int32_t id) {
  Class& c = classes_[id];
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    auto& users = resources_[c.uses[i].resource].users;
    c.user_slot[i] = static_cast<std::int32_t>(users.size());
    users.push_back(id);
  }
  c.listed = true;
}

void FluidNetwork::unlist(std::int32_t id) {
  Class& c = classes_[id];
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    const std::int32_t resource = c.uses[i].resource;
    auto& users = resources_[resource].users;
    const std::int32_t slot = c.user_slot[i];
    const std::int32_t moved = users.back();
    users[slot] = moved;
    users.pop_back();
    if (moved == id) continue;
    Class& m = classes_[moved];
    for (std::int32_t j = 0; j < m.use_count; ++j) {
      if (m.uses[j].resource == resource) m.user_slot[j] = slot;
    }
  }
  c.listed = false;
}

void FluidNetwork::mark_changed(std::int32_t id) {
  Class& c = classes_[id];
  if (!c.changed) {
    c.changed = true;
    changed_.push_back(id);
  }
}

void FluidNetwork::start(std::int32_t class_id, double amount, double weight, std::uint32_t token,
                         double now_ns) {
  TRITAX_ASSERT(amount >= 0 && weight > 0, "an activity needs work and a weight");
  Class& c = classes_[class_id];
  if (c.ends.empty()) {
    // Nothing runs: restart the class clock, which keeps virtual times small and precise.
    c.virtual_time = 0;
    c.since_ns = now_ns;
  } else {
    advance(c, now_ns);
  }
  c.weight = c.ends.empty() ? weight : c.weight + weight;
  c.ends.push_back({c.virtual_time + amount / weight, weight, sequence_++, token});
  std::push_heap(c.ends.begin(), c.ends.end(), [](const End& a, const End& b) {
    return a.virtual_time != b.virtual_time ? a.virtual_time > b.virtual_time : a.sequence > b.sequence;
  });
  mark_changed(class_id);
}

double FluidNetwork::next_completion_ns() const { return heap_.empty() ? kInfinity : heap_[0].end_ns; }

FluidNetwork::Completion FluidNetwork::complete(double now_ns) {
  TRITAX_ASSERT(!heap_.empty() && heap_[0].end_ns <= now_ns, "nothing completes now");
  const std::int32_t id = heap_[0].id;
  Class& c = classes_[id];
  advance(c, now_ns);
  std::pop_heap(c.ends.begin(), c.ends.end(), [](const End& a, const End& b) {
    return a.virtual_time != b.virtual_time ? a.virtual_time > b.virtual_time : a.sequence > b.sequence;
  });
  const End end = c.ends.back();
  c.ends.pop_back();
  // Rounding must not leave the class behind the work that it has finished.
  c.virtual_time = std::max(c.virtual_time, end.virtual_time);
  c.weight = c.ends.empty() ? 0 : c.weight - end.weight;
  mark_changed(id);
  schedule(id, now_ns);
  return {end.token, id};
}

bool FluidNetwork::saturated(std::int32_t resource) const {
  const Resource& r = resources_[resource];
  return r.load >= r.capacity * (1 - kTolerance);
}

double FluidNetwork::carried(std::int32_t resource, double now_ns) const {
  const Resource& r = resources_[resource];
  return r.carried + r.load * (now_ns - r.since_ns);
}

void FluidNetwork::change_load(std::int32_t resource, double delta, double now_ns) {
  Resource& r = resources_[resource];
  r.carried += r.load * (now_ns - r.since_ns);
  r.since_ns = now_ns;
  r.load += delta;
  // Sums of differences drift; an unused resource has no load at all.
  if (r.users.empty() || r.load < 0) r.load = 0;
}

// A change that leaves every other class alone: the class runs at its cap before and after, and no resource
// that it uses was or becomes saturated.
bool FluidNetwork::settle_without_solving(std::int32_t id, double now_ns) {
  Class& c = classes_[id];
  const double delta = c.weight - c.settled_weight;
  const bool at_cap = c.settled_weight == 0 || (c.level == c.cap && c.bottleneck == kNone);
  if (!at_cap || c.cap == kInfinity) return false;
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    const Resource& r = resources_[c.uses[i].resource];
    if (r.load >= r.capacity * (1 - kTolerance)) return false;
    if (r.load + delta * c.cap * c.uses[i].coefficient > r.capacity * (1 - kTolerance)) return false;
  }
  if (c.weight > 0) {
    if (!c.listed) list(id);
    c.level = c.cap;
    c.bottleneck = kNone;
  } else {
    if (c.listed) unlist(id);
    c.level = 0;
  }
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    change_load(c.uses[i].resource, delta * c.cap * c.uses[i].coefficient, now_ns);
  }
  c.settled_weight = c.weight;
  schedule(id, now_ns);
  return true;
}

// A change inside a class that has its bottleneck to itself: its activities share the same total rate
// differently, which nobody else notices as long as nothing else that the class uses is saturated.
bool FluidNetwork::settle_within_class(std::int32_t id, double now_ns) {
  Class& c = classes_[id];
  if (c.bottleneck == kNone || c.weight == 0 || resources_[c.bottleneck].users.size() != 1) return false;
  const double level = c.level * c.settled_weight / c.weight;
  if (level > c.cap) return false;
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    if (c.uses[i].resource != c.bottleneck && saturated(c.uses[i].resource)) return false;
  }
  advance(c, now_ns);
  c.level = level;
  c.settled_weight = c.weight;
  schedule(id, now_ns);
  return true;
}

void FluidNetwork::include(std::int32_t id) {
  Class& c = classes_[id];
  if (c.mark == solve_number_) return;
  c.mark = solve_number_;
  members_.push_back(id);
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    Resource& r = resources_[c.uses[i].resource];
    if (r.mark != solve_number_) {
      r.mark = solve_number_;
      touched_.push_back(c.uses[i].resource);
    }
  }
}

void FluidNetwork::include_sharers_of_saturated() {
  for (; next_to_expand_ < members_.size(); ++next_to_expand_) {
    const Class& c = classes_[members_[next_to_expand_]];
    for (std::int32_t i = 0; i < c.use_count; ++i) {
      Resource& r = resources_[c.uses[i].resource];
      if (r.expanded == solve_number_ || r.load < r.capacity * (1 - kTolerance)) continue;
      r.expanded = solve_number_;
      for (const std::int32_t user : r.users) include(user);
    }
  }
}

// After a solve: a resource that is now full but has users that were not solved for may have to slow them
// down.
bool FluidNetwork::include_newly_constrained() {
  const std::size_t before = members_.size();
  const std::size_t solved = touched_.size();
  for (std::size_t t = 0; t < solved; ++t) {
    Resource& r = resources_[touched_[t]];
    if (!r.tight || r.room > r.capacity * kTolerance) continue;
    for (const std::int32_t user : r.users) include(user);
  }
  return members_.size() != before;
}

// Progressive filling: raise all levels together; whoever meets its cap or a full resource stays there.
void FluidNetwork::fill() {
  for (const std::int32_t t : touched_) {
    Resource& r = resources_[t];
    r.room = r.capacity - r.load;
    r.demand = 0;
    r.demand_at_caps = 0;
    r.open = 0;
    r.full = false;
  }
  levels_.assign(members_.size(), 0.0);
  bottlenecks_.assign(members_.size(), kNone);
  open_.clear();
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const Class& c = classes_[members_[m]];
    const double rate = c.level * c.settled_weight;
    for (std::int32_t i = 0; i < c.use_count; ++i) {
      Resource& r = resources_[c.uses[i].resource];
      const double demand = c.weight * c.uses[i].coefficient;
      r.room += rate * c.uses[i].coefficient;
      r.demand += demand;
      if (c.weight > 0) r.demand_at_caps += demand * c.cap;
      r.open += c.weight > 0;
    }
    if (c.weight > 0) open_.push_back(static_cast<std::int32_t>(m));
  }
  // Most resources could serve everybody at the caps; only the others can decide anything.
  tight_.clear();
  for (const std::int32_t t : touched_) {
    Resource& r = resources_[t];
    r.tight = r.demand_at_caps > r.room * (1 - kTolerance);
    if (r.tight) tight_.push_back(t);
  }
  while (!open_.empty()) fill_round();
}

// Raises the levels of the open classes to the next cap or full resource and closes whoever met it.
void FluidNetwork::fill_round() {
  double level = kInfinity;
  for (const std::int32_t t : tight_) {
    const Resource& r = resources_[t];
    if (r.open > 0) level = std::min(level, std::max(r.room, 0.0) / r.demand);
  }
  for (const std::int32_t m : open_) level = std::min(level, classes_[members_[m]].cap);
  TRITAX_ASSERT(level < kInfinity, "a class without cap and without resource cannot be filled");
  const double full = level * (1 + kTolerance);
  // Decide against the state before this round, so that the order of the classes does not matter.
  for (const std::int32_t t : tight_) {
    Resource& r = resources_[t];
    r.full = r.open > 0 && std::max(r.room, 0.0) / r.demand <= full;
  }
  std::size_t still_open = 0;
  for (const std::int32_t m : open_) {
    const Class& c = classes_[members_[m]];
    std::int32_t bottleneck = kNone;
    if (c.cap > full) {
      for (std::int32_t i = 0; i < c.use_count && bottleneck == kNone; ++i) {
        if (resources_[c.uses[i].resource].full) bottleneck = c.uses[i].resource;
      }
      if (bottleneck == kNone) {
        open_[still_open++] = m;
        continue;
      }
    }
    levels_[m] = bottleneck == kNone ? c.cap : level;
    bottlenecks_[m] = bottleneck;
    for (std::int32_t i = 0; i < c.use_count; ++i) {
      Resource& r = resources_[c.uses[i].resource];
      if (!r.tight) continue;
      r.room -= levels_[m] * c.weight * c.uses[i].coefficient;
      r.demand -= c.weight * c.uses[i].coefficient;
      --r.open;
    }
  }
  open_.resize(still_open);
}

void FluidNetwork::apply(double now_ns) {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    Class& c = classes_[members_[m]];
    const double before = c.level * c.settled_weight;
    const double after = levels_[m] * c.weight;
    if (c.weight > 0 && !c.listed) list(members_[m]);
    if (c.weight == 0 && c.listed) unlist(members_[m]);
    if (before != after) {
      for (std::int32_t i = 0; i < c.use_count; ++i) {
        change_load(c.uses[i].resource, (after - before) * c.uses[i].coefficient, now_ns);
      }
    }
    // Even at the same level and weight a changed class ends something else next.
    const bool reschedule = c.changed || c.level != levels_[m];
    c.changed = false;
    if (c.level != levels_[m]) {
      advance(c, now_ns);
      c.level = levels_[m];
    }
    c.settled_weight = c.weight;
    c.bottleneck = bottlenecks_[m];
    if (reschedule) schedule(members_[m], now_ns);
  }
}

void FluidNetwork::settle(double now_ns) {
  if (changed_.empty()) return;
  solve_number_ = (solve_number_ + 1) & 0x7fffffffu;
  members_.clear();
  touched_.clear();
  next_to_expand_ = 0;
  for (const std::int32_t id : changed_) {
    if (settle_without_solving(id, now_ns) || settle_within_class(id, now_ns)) {
      classes_[id].changed = false;
    } else {
      include(id);
    }
  }
  changed_.clear();
  if (members_.empty()) return;
  ++solves_;
  do {
    include_sharers_of_saturated();
    fill();
  } while (include_newly_constrained());
  apply(now_ns);
}

void FluidNetwork::schedule(std::int32_t id, double now_ns) {
  Class& c = classes_[id];
  if (c.ends.empty() || c.level <= 0) {
    if (c.heap_slot != kNone) heap_remove(id);
    return;
  }
  advance(c, now_ns);
  const double end_ns = now_ns + std::max(0.0, c.ends.front().virtual_time - c.virtual_time) / c.level;
  if (c.heap_slot == kNone) {
    heap_.push_back({end_ns, id});
    heap_up(heap_.size() - 1);
    return;
  }
  const std::size_t slot = static_cast<std::size_t>(c.heap_slot);
  const bool sooner = end_ns < heap_[slot].end_ns;
  heap_[slot].end_ns = end_ns;
  if (sooner) {
    heap_up(slot);
  } else {
    heap_down(slot);
  }
}

void FluidNetwork::heap_up(std::size_t slot) {
  const Ending moving = heap_[slot];
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / 2;
    if (!moving.before(heap_[parent])) break;
    heap_put(slot, heap_[parent]);
    slot = parent;
  }
  heap_put(slot, moving);
}

void FluidNetwork::heap_down(std::size_t slot) {
  const Ending moving = heap_[slot];
  for (;;) {
    std::size_t child = 2 * slot + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
    if (!heap_[child].before(moving)) break;
    heap_put(slot, heap_[child]);
    slot = child;
  }
  heap_put(slot, moving);
}

void FluidNetwork::heap_put(std::size_t slot, const Ending& ending) {
  heap_[slot] = ending;
  classes_[ending.id].heap_slot = static_cast<std::int32_t>(slot);
}

void FluidNetwork::heap_remove(std::int32_t id) {
  const std::size_t slot = static_cast<std::size_t>(classes_[id].heap_slot);
  classes_[id].heap_slot = kNone;
  const Ending last = heap_.back();
  heap_.pop_back();
  if (last.id == id) return;
  heap_put(slot, last);
  heap_up(slot);
  heap_down(static_cast<std::size_t>(classes_[last.id].heap_slot));
}

}  // namespace tritax
