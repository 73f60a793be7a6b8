#include "sim/fluid.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"

namespace tritax {

std::int32_t FluidNetwork::add_resource(double capacity_per_ns, bool link) {
  TRITAX_ASSERT(capacity_per_ns > 0, "a resource needs a positive capacity");
  Resource& resource = *resources_.emplace_back(std::make_unique<Resource>());
  resource.id = static_cast<std::int32_t>(resources_.size()) - 1;
  resource.capacity = capacity_per_ns;
  resource.link = link;
  resource.nearly_full = capacity_per_ns * (1 - kTolerance);
  resource.never_full = capacity_per_ns * (1 - kMargin);
  return resource.id;
}

std::int32_t FluidNetwork::add_class(std::span<const Use> uses, double cap) {
  TRITAX_ASSERT(cap > 0, "a class needs a positive cap");
  auto added = std::make_unique<Class>();
  Class& c = *added;
  c.id = static_cast<std::int32_t>(classes_.size());
  c.cap = cap;
  for (const Use& use : uses) {
    if (use.coefficient == 0) continue;
    TRITAX_ASSERT(use.coefficient > 0, "a class cannot relieve a resource");
    Resource* const resource = resources_[use.resource].get();
    const auto begin = c.part_array.begin();
    const auto end = begin + c.part_count;
    const auto same = std::find_if(begin, end, [&](const Part& part) { return part.resource == resource; });
    if (same != end) {
      same->coefficient += use.coefficient;
      continue;
    }
    TRITAX_ASSERT(c.part_count < kMaxUses, "too many resources in one class");
    c.part_array[static_cast<std::size_t>(c.part_count++)] = {resource, use.coefficient};
  }
  TRITAX_ASSERT(c.part_count > 0 || cap < kInfinity, "a class without resources needs a finite cap");
  if (cap == kInfinity) mark_unbounded(c);
  classes_.push_back(std::move(added));
  next_end_.add_player();
  return c.id;
}

void FluidNetwork::mark_unbounded(const Class& c) {
  for (const Part& part : c.parts()) part.resource->bounded = false;
}

void FluidNetwork::set_cap(std::int32_t class_id, double cap) {
  Class& c = *classes_[class_id];
  if (c.cap == cap) return;
  c.cap = cap;
  if (cap == kInfinity) mark_unbounded(c);
  if (!c.ends.empty()) mark_changed(c);
}

void FluidNetwork::list(Class& c) {
  for (std::int32_t i = 0; i < c.part_count; ++i) {
    const Part& part = c.part_array[i];
    c.user_slot[i] = static_cast<std::int32_t>(part.resource->users.size());
    part.resource->users.push_back({&c, part.coefficient, i});
  }
  c.listed = true;
}

void FluidNetwork::unlist(Class& c) {
  for (std::int32_t i = 0; i < c.part_count; ++i) {
    Resource& r = *c.part_array[i].resource;
    const std::int32_t slot = c.user_slot[i];
    const User moved = r.users.back();
    r.users[slot] = moved;
    r.users.pop_back();
    if (r.users.empty()) r.load = 0;  // resets the drift of summed differences
    if (moved.of != &c) moved.of->user_slot[static_cast<std::size_t>(moved.part)] = slot;
  }
  c.listed = false;
}

// Updates the load of a class's resources with all users at their caps.
void FluidNetwork::count_at_cap(Class& c) {
  if (c.cap == kInfinity) return;
  const double at_cap = c.weight * c.cap;
  if (at_cap == c.counted_at_cap) return;
  const double change = at_cap - c.counted_at_cap;
  c.counted_at_cap = at_cap;
  for (const Part& part : c.parts()) part.resource->users_at_caps += change * part.coefficient;
}

void FluidNetwork::mark_changed(Class& c) {
  if (!c.changed) {
    c.changed = true;
    changed_.push_back(&c);
  }
}

void FluidNetwork::start(std::int32_t class_id, double amount, double weight, std::uint32_t token,
                         double now_ns) {
  TRITAX_ASSERT(amount >= 0 && weight > 0, "an activity needs work and a weight");
  Class& c = *classes_[class_id];
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
  mark_changed(c);
}

FluidNetwork::Completion FluidNetwork::complete(double now_ns) {
  TRITAX_ASSERT(next_completion_ns() <= now_ns, "nothing completes now");
  const double same_ns = same_time_until(now_ns);
  const Tournament::Winner winner = next_end_.winner(same_ns);
  Class& c = *classes_[winner.player];
  advance(c, now_ns);
  const End end = c.ends.pop();
  // Rounding must not leave the class behind the work that it has finished.
  c.virtual_time = std::max(c.virtual_time, end.virtual_time);
  c.weight = c.ends.empty() ? 0 : c.weight - end.weight;
  if (!c.ends.empty()) c.first_end = c.ends.front().virtual_time;
  mark_changed(c);
  // Usually nothing else ends now; then settle() finds the next end of the class.
  const double same_virtual = c.virtual_time + c.level * (same_ns - now_ns);
  const bool more_now = !c.ends.empty() && c.ends.front().virtual_time <= same_virtual;
  unsettled_completion_ = !winner.tied && !more_now && next_end_.smallest() == now_ns;
  if (!unsettled_completion_) schedule(c, now_ns);
  return {end.token, winner.player, c.lost_on_links_ns};
}

bool FluidNetwork::contended(std::int32_t class_id) const {
  bool contended = false;
  for (const Part& part : classes_[class_id]->parts()) contended |= part.resource->saturated();
  return contended;
}

double FluidNetwork::carried(std::int32_t resource, double now_ns) const {
  double carried = 0;
  for (const auto& c : classes_) {
    for (const Part& part : c->parts()) {
      if (part.resource->id != resource) continue;
      carried += part.coefficient * (c->done + c->level * c->settled_weight * (now_ns - c->since_ns));
    }
  }
  return carried;
}

// A change that affects no other class: the class runs at its cap before and after, and no resource that it
// uses was or becomes saturated.
bool FluidNetwork::settle_without_solving(Class& c, double now_ns) {
  const bool at_cap = c.settled_weight == 0 || (c.level == c.cap && c.bottleneck == nullptr);
  if (!at_cap || c.cap == kInfinity) return false;
  const double rate = (c.weight - c.settled_weight) * c.cap;
  bool reaches = false;
  for (const Part& part : c.parts()) {
    const Resource& r = *part.resource;
    reaches |= r.load >= r.nearly_full;
    reaches |= r.load + rate * part.coefficient > r.nearly_full;
  }
  if (reaches) return false;
  const double at_caps = c.weight * c.cap - c.counted_at_cap;
  c.counted_at_cap += at_caps;
  for (const Part& part : c.parts()) {
    Resource& r = *part.resource;
    r.users_at_caps += at_caps * part.coefficient;
    r.load = std::max(r.load + rate * part.coefficient, 0.0);
  }
  c.settled_weight = c.weight;
  c.level = 0;
  if (c.weight > 0) {
    if (!c.listed) list(c);
    c.level = c.cap;
    c.bottleneck = nullptr;
  } else if (c.listed) {
    unlist(c);
  }
  schedule(c, now_ns);
  return true;
}

// Activities have ended and others of the same weights have taken their places: no rate changes.
bool FluidNetwork::settle_replaced(Class& c, double now_ns) {
  if (c.weight == 0 || c.counted_at_cap != c.settled_weight * c.cap) return false;
  if (std::abs(c.weight - c.settled_weight) > kTolerance * c.weight) return false;
  c.weight = c.settled_weight;
  schedule(c, now_ns);
  return true;
}

// A change inside a class that has its bottleneck to itself: its activities share the same total rate
// differently, which affects no other class as long as no other resource of the class is saturated.
bool FluidNetwork::settle_within_class(Class& c, double now_ns) {
  if (c.bottleneck == nullptr || c.weight == 0 || c.bottleneck->users.size() != 1) return false;
  const double level = c.level * c.settled_weight / c.weight;
  if (level > c.cap) return false;
  for (const Part& part : c.parts()) {
    if (part.resource != c.bottleneck && part.resource->saturated()) return false;
  }
  advance(c, now_ns);
  c.level = level;
  find_loss(c, now_ns);
  c.settled_weight = c.weight;
  schedule(c, now_ns);
  return true;
}

// The saturated resource that alone decides about a changed class: the one that holds it back, or, if nothing
// ran in the class before, the only saturated resource that it uses. Null if there is none.
FluidNetwork::Resource* FluidNetwork::bottleneck_of_change(const Class& c) {
  if (c.settled_weight > 0) return c.bottleneck;
  Resource* only = nullptr;
  for (const Part& part : c.parts()) {
    if (!part.resource->saturated()) continue;
    if (only != nullptr) return nullptr;
    only = part.resource;
  }
  return only;
}

// Adds the changed classes of a share to `members_`, and then the classes that its resource holds back. Finds
// their level if the resource holds all of them back, else 0.
void FluidNetwork::find_level(Share& share) {
  const Resource& shared = *share.resource;
  double room = shared.capacity - shared.load;
  double demand = 0;
  double lowest_cap = kInfinity;
  double highest_other = 0;
  const auto join = [&](Class& c, double coefficient) {
    members_.push_back(&c);
    if (c.weight > 0) lowest_cap = std::min(lowest_cap, c.cap);
    room += c.level * c.settled_weight * coefficient;
    demand += c.weight * coefficient;
  };
  share.begin = members_.size();
  for (Class* const c : changed_) {
    // A single share has all changed classes.
    if (shares_.size() > 1 && bottleneck_of_change(*c) != &shared) continue;
    for (const Part& part : c->parts()) {
      if (part.resource == &shared) join(*c, part.coefficient);
    }
  }
  share.held = members_.size();
  for (const User& user : shared.users) {
    Class& c = *user.of;
    if (c.changed) continue;
    if (c.bottleneck == &shared) {
      join(c, user.coefficient);
    } else {
      highest_other = std::max(highest_other, c.level);
    }
  }
  share.end = members_.size();
  if (demand == 0) return;
  const double level = std::max(room, 0.0) / demand;
  if (level * (1 + kTolerance) < lowest_cap && highest_other <= level) share.level = level;
}

// Changes the loads to the level of the members of a share. False if a resource other than the shared one is
// saturated before or after.
bool FluidNetwork::change_loads(const Share& share) {
  const std::size_t most = load_changes_ + (share.end - share.begin) * kMaxUses;
  if (loads_before_.size() < most) loads_before_.resize(most);
  LoadBefore* end = loads_before_.data() + load_changes_;
  bool saturated_other = false;
  for (std::size_t m = share.begin; m < share.end; ++m) {
    const Class& c = *members_[m];
    const double change = share.level * c.weight - c.level * c.settled_weight;
    for (const Part& part : c.parts()) {
      Resource& r = *part.resource;
      const double before = r.load;
      *end++ = {&r, before};
      r.load = std::max(before + change * part.coefficient, 0.0);
      saturated_other |= (&r != share.resource) & (std::max(before, r.load) >= r.nearly_full);
    }
  }
  load_changes_ = static_cast<std::size_t>(end - loads_before_.data());
  return !saturated_other;
}

void FluidNetwork::restore_loads() {
  while (load_changes_ > 0) {
    const LoadBefore& before = loads_before_[--load_changes_];
    before.resource->load = before.load;
  }
}

// Fills `shares_` with the bottlenecks of the changed classes. False if a changed class has none.
bool FluidNetwork::find_shares() {
  shares_.clear();
  for (const Class* const c : changed_) {
    Resource* const shared = bottleneck_of_change(*c);
    if (shared == nullptr) return false;
    const bool known = std::any_of(shares_.begin(), shares_.end(),
                                   [&](const Share& share) { return share.resource == shared; });
    if (!known) shares_.push_back({shared});
  }
  return true;
}

// Changes in classes that share a bottleneck: as long as it stays the bottleneck of all classes that it holds
// back, and no other resource of theirs is or becomes saturated, they share its room, whatever happens
// elsewhere.
bool FluidNetwork::settle_at_bottlenecks(double now_ns) {
  if (!find_shares()) return false;
  members_.clear();
  for (Share& share : shares_) {
    find_level(share);
    if (share.level == 0) return false;
  }
  load_changes_ = 0;
  for (const Share& share : shares_) {
    if (change_loads(share)) continue;
    restore_loads();
    return false;
  }
  // Before ended classes leave: a resource without users forgets its load.
  for (Class* const c : changed_) {
    if (c->weight > 0 && !c->listed) list(*c);
  }
  for (const Share& share : shares_) {
    for (std::size_t m = share.begin; m < share.held; ++m) {
      Class& c = *members_[m];
      commit(c, share.level, c.weight > 0 ? share.resource : nullptr, now_ns);
    }
    for (std::size_t m = share.held; m < share.end; ++m) {
      Class& c = *members_[m];
      if (c.level == share.level) continue;
      advance(c, now_ns);
      c.level = share.level;
      find_loss(c, now_ns);
      reschedule(c, now_ns);
    }
  }
  return true;
}

// A class has a new level; the loads already contain it.
void FluidNetwork::commit(Class& c, double level, Resource* bottleneck, double now_ns) {
  const bool runs = c.weight > 0;
  if (runs != c.listed) runs ? list(c) : unlist(c);
  // Even at the same level and weight, another activity of a changed class ends next.
  const bool reschedule = c.changed | (c.level != level);
  c.changed = false;
  if (reschedule) {
    advance(c, now_ns);
    c.level = level;
  }
  c.settled_weight = c.weight;
  if (c.bottleneck != bottleneck) {
    if (c.bottleneck != nullptr) --c.bottleneck->holds;
    if (bottleneck != nullptr) ++bottleneck->holds;
    c.bottleneck = bottleneck;
  }
  find_loss(c, now_ns);
  if (reschedule) schedule(c, now_ns);
}

void FluidNetwork::settle(double now_ns) {
  if (changed_.empty()) return;
  unsettled_completion_ = false;
  std::size_t unsettled = 0;
  for (Class* const c : changed_) {
    if (settle_replaced(*c, now_ns) || settle_without_solving(*c, now_ns)) {
      c->changed = false;
      continue;
    }
    count_at_cap(*c);
    if (settle_within_class(*c, now_ns)) {
      c->changed = false;
    } else {
      changed_[unsettled++] = c;
    }
  }
  changed_.resize(unsettled);
  if (unsettled > 0 && !settle_at_bottlenecks(now_ns)) solve(now_ns);
  changed_.clear();
}

void FluidNetwork::schedule(Class& c, double now_ns) {
  if (c.weight <= 0 || c.level <= 0) {
    if (next_end_.key(c.id) != Tournament::kOut) next_end_.set(c.id, Tournament::kOut);
    return;
  }
  advance(c, now_ns);
  reschedule(c, now_ns);
}

// Sets the next end of a class with a rate, as of now.
void FluidNetwork::reschedule(const Class& c, double now_ns) {
  next_end_.set(c.id, now_ns + std::max(0.0, c.first_end - c.virtual_time) / c.level);
}

}  // namespace tritax
