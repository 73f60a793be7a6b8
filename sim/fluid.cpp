#include "sim/fluid.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"

namespace tritax {

std::int32_t FluidNetwork::add_resource(double capacity_per_ns, bool link) {
  TRITAX_ASSERT(capacity_per_ns > 0, "a resource needs a positive capacity");
  Resource resource;
  resource.capacity = capacity_per_ns;
  resource.link = link;
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
    r.users.push_back({id, i, c.uses[i].coefficient});
  }
  c.listed = true;
}

void FluidNetwork::unlist(std::int32_t id) {
  Class& c = classes_[id];
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    const std::int32_t resource = c.uses[i].resource;
    auto& users = resources_[resource].users;
    const std::int32_t slot = c.user_slot[i];
    const User moved = users.back();
    users[slot] = moved;
    users.pop_back();
    if (users.empty()) resources_[resource].load = 0;  // sums of differences drift
    if (moved.id != id) classes_[moved.id].user_slot[static_cast<std::size_t>(moved.use)] = slot;
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
  c.ends.push({c.virtual_time + amount / weight, weight, sequence_++, token});
  c.first_end = c.ends.front().virtual_time;
  mark_changed(class_id);
}

FluidNetwork::Completion FluidNetwork::complete(double now_ns) {
  TRITAX_ASSERT(next_completion_ns() <= now_ns, "nothing completes now");
  const double same_ns = same_time_until(now_ns);
  const Tournament::Winner winner = next_end_.winner(same_ns);
  Class& c = classes_[winner.player];
  advance(c, now_ns);
  const End end = c.ends.pop();
  // Rounding must not leave the class behind the work that it has finished.
  c.virtual_time = std::max(c.virtual_time, end.virtual_time);
  c.weight = c.ends.empty() ? 0 : c.weight - end.weight;
  if (!c.ends.empty()) c.first_end = c.ends.front().virtual_time;
  mark_changed(winner.player);
  // Mostly nothing else ends now; then settle() finds out when the class ends next.
  const double same_virtual = c.virtual_time + c.level * (same_ns - now_ns);
  const bool more_now = !c.ends.empty() && c.ends.front().virtual_time <= same_virtual;
  unsettled_completion_ = !winner.tied && !more_now && next_end_.smallest() == now_ns;
  if (!unsettled_completion_) schedule(winner.player, now_ns);
  return {end.token, winner.player, c.lost_on_links_ns};
}

bool FluidNetwork::saturated(std::int32_t resource) const {
  const Resource& r = resources_[resource];
  return r.load >= r.nearly_full;
}

bool FluidNetwork::contended(std::int32_t class_id) const {
  const Class& c = classes_[class_id];
  bool contended = false;
  for (std::int32_t i = 0; i < c.use_count; ++i) contended |= saturated(c.uses[i].resource);
  return contended;
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
  bool reaches = false;
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    const Resource& r = resources_[c.uses[i].resource];
    reaches |= r.load >= r.nearly_full;
    reaches |= r.load + rate * c.uses[i].coefficient > r.nearly_full;
  }
  if (reaches) return false;
  const double at_caps = c.weight * c.cap - c.counted_at_cap;
  c.counted_at_cap += at_caps;
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    Resource& r = resources_[c.uses[i].resource];
    r.users_at_caps += at_caps * c.uses[i].coefficient;
    r.load = std::max(r.load + rate * c.uses[i].coefficient, 0.0);
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

// Activities have ended and others of the same weights have taken their places: nobody's rate changes.
bool FluidNetwork::settle_replaced(std::int32_t id, double now_ns) {
  Class& c = classes_[id];
  if (c.weight == 0 || c.counted_at_cap != c.settled_weight * c.cap) return false;
  if (std::abs(c.weight - c.settled_weight) > kTolerance * c.weight) return false;
  c.weight = c.settled_weight;
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
  find_loss(c, now_ns);
  c.settled_weight = c.weight;
  schedule(id, now_ns);
  return true;
}

// The saturated resource that alone decides about a changed class: the one that holds it, or, if it ran
// nothing before, the only one among those that it uses.
std::int32_t FluidNetwork::bottleneck_of_change(const Class& c) const {
  if (c.settled_weight > 0) return c.bottleneck;
  std::int32_t only = kNone;
  for (std::int32_t i = 0; i < c.use_count; ++i) {
    if (!saturated(c.uses[i].resource)) continue;
    if (only != kNone) return kNone;
    only = c.uses[i].resource;
  }
  return only;
}

// Fills `members_` with the changed classes and those that the resource `shared` holds. Their level if it
// holds them all, else 0.
double FluidNetwork::level_at(std::int32_t shared) {
  const Resource& r = resources_[shared];
  double room = r.capacity - r.load;
  double demand = 0;
  double lowest_cap = kInfinity;
  double highest_other = 0;
  members_.clear();
  const auto join = [&](std::int32_t member, double coefficient) {
    const Class& c = classes_[member];
    members_.push_back(member);
    if (c.weight > 0) lowest_cap = std::min(lowest_cap, c.cap);
    room += c.level * c.settled_weight * coefficient;
    demand += c.weight * coefficient;
  };
  for (const std::int32_t id : changed_) {
    const Class& c = classes_[id];
    for (std::int32_t i = 0; i < c.use_count; ++i) {
      if (c.uses[i].resource == shared) join(id, c.uses[i].coefficient);
    }
  }
  for (const User& user : r.users) {
    const Class& c = classes_[user.id];
    if (c.changed) continue;
    if (c.bottleneck == shared) {
      join(user.id, user.coefficient);
    } else {
      highest_other = std::max(highest_other, c.level);
    }
  }
  if (demand == 0) return 0;
  const double level = std::max(room, 0.0) / demand;
  return level * (1 + kTolerance) < lowest_cap && highest_other <= level ? level : 0;
}

// Brings the loads to `level` of all members. False, and nothing is changed, if a resource besides `shared`
// is saturated before or after.
bool FluidNetwork::change_loads(double level, std::int32_t shared) {
  loads_before_.resize(std::max(loads_before_.size(), members_.size() * kMaxUses));
  LoadBefore* const begin = loads_before_.data();
  LoadBefore* end = begin;
  bool saturated_other = false;
  for (const std::int32_t member : members_) {
    const Class& c = classes_[member];
    const double change = level * c.weight - c.level * c.settled_weight;
    for (std::int32_t i = 0; i < c.use_count; ++i) {
      const Use& use = c.uses[i];
      Resource& r = resources_[use.resource];
      const double before = r.load;
      *end++ = {use.resource, before};
      r.load = std::max(before + change * use.coefficient, 0.0);
      saturated_other |= (use.resource != shared) & (std::max(before, r.load) >= r.nearly_full);
    }
  }
  if (!saturated_other) return true;
  while (end != begin) {
    --end;
    resources_[end->resource].load = end->load;
  }
  return false;
}

// Changes in classes that share a bottleneck: as long as it stays that of all that it holds, and nothing else
// that they use is or becomes saturated, they share what it has for them.
bool FluidNetwork::settle_at_bottleneck(double now_ns) {
  const std::int32_t shared = bottleneck_of_change(classes_[changed_.front()]);
  if (shared == kNone) return false;
  for (const std::int32_t id : changed_) {
    if (bottleneck_of_change(classes_[id]) != shared) return false;
  }
  const double level = level_at(shared);
  if (level == 0 || !change_loads(level, shared)) return false;
  // Before those that have ended leave: a resource without users forgets its load.
  for (const std::int32_t member : members_) {
    if (classes_[member].weight > 0 && !classes_[member].listed) list(member);
  }
  for (const std::int32_t member : members_) {
    commit(member, level, classes_[member].weight > 0 ? shared : kNone, now_ns);
  }
  return true;
}

// A class has a new level; the loads say so already.
void FluidNetwork::commit(std::int32_t id, double level, std::int32_t bottleneck, double now_ns) {
  Class& c = classes_[id];
  const bool runs = c.weight > 0;
  if (runs != c.listed) runs ? list(id) : unlist(id);
  // Even at the same level and weight a changed class ends something else next.
  const bool reschedule = c.changed | (c.level != level);
  c.changed = false;
  if (reschedule) {
    advance(c, now_ns);
    c.level = level;
  }
  c.settled_weight = c.weight;
  if (c.bottleneck != bottleneck) {
    if (c.bottleneck != kNone) --resources_[c.bottleneck].holds;
    if (bottleneck != kNone) ++resources_[bottleneck].holds;
    c.bottleneck = bottleneck;
  }
  find_loss(c, now_ns);
  if (reschedule) schedule(id, now_ns);
}

void FluidNetwork::settle(double now_ns) {
  if (changed_.empty()) return;
  unsettled_completion_ = false;
  std::size_t unsettled = 0;
  for (const std::int32_t id : changed_) {
    if (settle_replaced(id, now_ns)) {
      classes_[id].changed = false;
      continue;
    }
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
  if (unsettled > 0 && !settle_at_bottleneck(now_ns)) solve(now_ns);
  changed_.clear();
}

void FluidNetwork::schedule(std::int32_t id, double now_ns) {
  Class& c = classes_[id];
  if (c.weight <= 0 || c.level <= 0) {
    if (next_end_.key(id) != Tournament::kOut) next_end_.set(id, Tournament::kOut);
    return;
  }
  advance(c, now_ns);
  next_end_.set(id, now_ns + std::max(0.0, c.first_end - c.virtual_time) / c.level);
}

}  // namespace tritax
