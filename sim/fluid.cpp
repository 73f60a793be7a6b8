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
// Wider than that and than what sums of differences drift.
constexpr double kMargin = 1e-6;

// More than 64 resources share bits.
std::uint64_t bit_of(std::int32_t slot) { return std::uint64_t{1} << (slot & 63); }
}  // namespace

std::int32_t FluidNetwork::add_resource(double capacity_per_ns) {
  TRITAX_ASSERT(capacity_per_ns > 0, "a resource needs a positive capacity");
  Resource resource;
  resource.capacity = capacity_per_ns;
  resource.nearly_full = capacity_per_ns * (1 - kTolerance);
  resource.never_full = capacity_per_ns * (1 - kMargin);
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
  if (cap == kInfinity) mark_unbounded(c);
  classes_.push_back(std::move(c));
  next_end_.add_player();
  return static_cast<std::int32_t>(classes_.size()) - 1;
}

void FluidNetwork::mark_unbounded(const Class& c) {
  for (std::int32_t i = 0; i < c.use_count; ++i) resources_[c.uses[i].resource].bounded = false;
}

void FluidNetwork::set_cap(std::int32_t class_id, double cap) {
  Class& c = classes_[class_id];
  if (c.cap == cap) return;
  c.cap = cap;
  if (cap == kInfinity) mark_unbounded(c);
  if (!c.ends.empty()) mark_changed(class_id);
}

void FluidNetwork::list(std::int32_t id) {
  Class& c = classes_[id];
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    Resource& r = resources_[c.uses[i].resource];
    c.user_slot[i] = static_cast<std::int32_t>(r.users.size());
    r.users.push_back(id);
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
    if (users.empty()) resources_[resource].load = 0;  // sums of differences drift
    if (moved == id) continue;
    Class& m = classes_[moved];
    for (std::int32_t j = 0; j < m.use_count; ++j) {
      if (m.uses[j].resource == resource) m.user_slot[j] = slot;
    }
  }
  c.listed = false;
}

// Keeps what the resources of a class would carry with everybody at the cap.
void FluidNetwork::count_at_cap(Class& c) {
  if (c.cap == kInfinity) return;
  const double at_cap = c.weight * c.cap;
  if (at_cap == c.counted_at_cap) return;
  const double change = at_cap - c.counted_at_cap;
  c.counted_at_cap = at_cap;
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    const Use& use = c.uses[i];
    resources_[use.resource].users_at_caps += change * use.coefficient;
  }
}

void FluidNetwork::mark_changed(std::int32_t id) {
  Class& c = classes_[id];
  if (!c.changed) {
    c.changed = true;
    changed_.push_back(id);
  }
}

// std::pop_heap branches on which child comes first, and a twentieth of a run is lost on guessing wrong. The
// hole on top sinks to the bottom, and the last end rises from there: it belongs near the bottom.
FluidNetwork::End FluidNetwork::pop(std::vector<End>& heap) {
  const EndsLater later;
  const End top = heap.front();
  const End last = heap.back();
  heap.pop_back();
  const std::size_t size = heap.size();
  if (size == 0) return top;
  std::size_t at = 0;
  for (std::size_t child = 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size) child += static_cast<std::size_t>(later(heap[child], heap[child + 1]));
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  std::push_heap(heap.begin(), heap.begin() + static_cast<std::ptrdiff_t>(at) + 1, later);
  return top;
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
  std::push_heap(c.ends.begin(), c.ends.end(), EndsLater{});
  mark_changed(class_id);
}

FluidNetwork::Completion FluidNetwork::complete(double now_ns) {
  TRITAX_ASSERT(next_completion_ns() <= now_ns, "nothing completes now");
  const Tournament::Winner winner = next_end_.winner();
  Class& c = classes_[winner.player];
  advance(c, now_ns);
  const End end = pop(c.ends);
  // Rounding must not leave the class behind the work that it has finished.
  c.virtual_time = std::max(c.virtual_time, end.virtual_time);
  c.weight = c.ends.empty() ? 0 : c.weight - end.weight;
  mark_changed(winner.player);
  // Mostly nothing else ends now; then settle() finds out when the class ends next.
  const bool more_now = !c.ends.empty() && c.ends.front().virtual_time <= c.virtual_time;
  unsettled_completion_ = !winner.tied && !more_now && next_end_.smallest() == now_ns;
  if (!unsettled_completion_) schedule(winner.player, now_ns);
  return {end.token, winner.player};
}

bool FluidNetwork::saturated(std::int32_t resource) const {
  const Resource& r = resources_[resource];
  return r.load >= r.nearly_full;
}

double FluidNetwork::carried(std::int32_t resource, double now_ns) const {
  double carried = 0;
  for (const Class& c : classes_) {
    for (std::int32_t i = 0; i < c.use_count; ++i) {
      if (c.uses[i].resource != resource) continue;
      carried += c.uses[i].coefficient * (c.done + c.level * c.settled_weight * (now_ns - c.since_ns));
    }
  }
  return carried;
}

void FluidNetwork::change_load(std::int32_t resource, double delta) {
  Resource& r = resources_[resource];
  r.load += delta;
  if (r.load < 0) r.load = 0;
}

// A change that leaves every other class alone: the class runs at its cap before and after, and no resource
// that it uses was or becomes saturated.
bool FluidNetwork::settle_without_solving(std::int32_t id, double now_ns) {
  Class& c = classes_[id];
  const bool at_cap = c.settled_weight == 0 || (c.level == c.cap && c.bottleneck == kNone);
  if (!at_cap || c.cap == kInfinity) return false;
  const double rate = (c.weight - c.settled_weight) * c.cap;
  std::array<double, kMaxUses> loads{};
  bool reaches = false;
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    const Resource& r = resources_[c.uses[i].resource];
    loads[i] = r.load + rate * c.uses[i].coefficient;
    reaches |= r.load >= r.nearly_full;
    reaches |= loads[i] > r.nearly_full;
  }
  if (reaches) return false;
  const double at_caps = c.weight * c.cap - c.counted_at_cap;
  c.counted_at_cap += at_caps;
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    Resource& r = resources_[c.uses[i].resource];
    r.users_at_caps += at_caps * c.uses[i].coefficient;
    r.load = std::max(loads[i], 0.0);
  }
  c.settled_weight = c.weight;
  c.level = 0;
  if (c.weight > 0) {
    if (!c.listed) list(id);
    c.level = c.cap;
    c.bottleneck = kNone;
  } else if (c.listed) {
    unlist(id);
  }
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
    Class& c = classes_[members_[m]];
    const double before = c.level * c.settled_weight;
    const double after = levels_[m] * c.weight;
    if (c.weight > 0 && !c.listed) list(members_[m]);
    if (c.weight == 0 && c.listed) unlist(members_[m]);
    if (before != after) {
      for (std::int32_t i = 0; i < c.use_count; ++i) {
        change_load(c.uses[i].resource, (after - before) * c.uses[i].coefficient);
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
    if (c.bottleneck != bottlenecks_[m]) {
      if (c.bottleneck != kNone) --resources_[c.bottleneck].holds;
      if (bottlenecks_[m] != kNone) ++resources_[bottlenecks_[m]].holds;
      c.bottleneck = bottlenecks_[m];
    }
    if (reschedule) schedule(members_[m], now_ns);
  }
}

void FluidNetwork::settle(double now_ns) {
  if (changed_.empty()) return;
  unsettled_completion_ = false;
  solve_number_ = (solve_number_ + 1) & 0x7fffffffu;
  members_.clear();
  touched_.clear();
  member_uses_.clear();
  first_use_.assign(1, 0);
  next_to_expand_ = 0;
  std::size_t unsettled = 0;
  for (const std::int32_t id : changed_) {
    if (settle_without_solving(id, now_ns)) {
      classes_[id].changed = false;
      continue;
    }
    count_at_cap(classes_[id]);
    if (settle_within_class(id, now_ns)) {
      classes_[id].changed = false;
    } else {
      changed_[unsettled++] = id;
    }
  }
  changed_.resize(unsettled);
  for (const std::int32_t id : changed_) include(id);
  changed_.clear();
  if (members_.empty()) return;
  ++solves_;
  do {
    include_held_by_saturated();
    fill();
  } while (include_overtaken());
  apply(now_ns);
}

void FluidNetwork::schedule(std::int32_t id, double now_ns) {
  Class& c = classes_[id];
  if (c.ends.empty() || c.level <= 0) {
    if (next_end_.key(id) != Tournament::kOut) next_end_.set(id, Tournament::kOut);
    return;
  }
  advance(c, now_ns);
  next_end_.set(id, now_ns + std::max(0.0, c.ends.front().virtual_time - c.virtual_time) / c.level);
}

}  // namespace tritax
