// Fluid bandwidth: activities that share resources, with max-min fair rates.
//
// A resource has a capacity (units per ns). A class is a set of activities that use the same resources in the
// same proportions; an activity has an amount of work and a weight. The rate of activity i of class c is
//
//     rate_i = weight_i · min(level_c, cap_c)
//
// and the levels are max-min fair: no level can be raised without lowering another level that is not larger
// (Bertsekas and Gallager, Data Networks, §6.5.2). Equivalently, every class runs at its cap or has a
// *bottleneck*: a saturated resource on which no other class has a larger level. A class c loads resource r
// with coefficient_cr · Σ rate_i.
//
// Cost. All activities of a class advance together, so a class keeps one virtual time V (work done per unit
// of weight) and a queue of the V at which each activity ends: starting or ending an activity costs O(log n).
// Rates are solved over classes, and only over the classes that a change can reach: the changed classes and,
// transitively, the classes that a saturated resource of these classes holds back. All other classes keep
// their rates to the bit; a class joins the solve if a full resource would otherwise leave it faster than the
// classes that the resource holds back. No solve is needed for an activity that starts at its cap without
// saturating a resource, for an activity that ends without having used a saturated resource, for a change in
// a class that has its bottleneck to itself, and for a change that leaves the weight of a class unchanged.
// Classes that have one bottleneck, and use no other full resource, share the bottleneck, whatever happens
// elsewhere.
//
// `settle` must be called after a batch of starts and completions at one time and before the clock moves on;
// between the two the rates are stale.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "model/core/same_time.hpp"
#include "sim/first_queue.hpp"
#include "sim/tournament.hpp"

namespace tritax {

class FluidNetwork {
 public:
  struct Use {
    std::int32_t resource = 0;
    double coefficient = 1;
  };

  struct Completion {
    std::uint32_t token = 0;
    std::int32_t class_id = 0;
    double lost_on_links_ns = 0;  // loss of the class until now
  };

  static constexpr int kMaxUses = 13;
  static constexpr std::int32_t kNone = -1;

  // lost_on_links_ns() counts the time that a resource with `link` holds activities back.
  std::int32_t add_resource(double capacity_per_ns, bool link = false);

  // `cap` is the largest level; infinity for none (the class must then use a resource). Several uses of one
  // resource add up.
  std::int32_t add_class(std::span<const Use> uses, double cap);

  // Changes the cap of a class (clock changes); takes effect at the next settle.
  void set_cap(std::int32_t class_id, double cap);

  // Starts an activity; `token` comes back when it completes. amount >= 0, weight > 0.
  void start(std::int32_t class_id, double amount, double weight, std::uint32_t token, double now_ns);

  // Recomputes the rates that the changes since the last call can have altered.
  void settle(double now_ns);

  // Time of the next completion, infinity if no activity is active or all active rates are zero. After a
  // completion and until settle() it is infinity unless another activity ends at the same time
  // (model/core/same_time.hpp).
  double next_completion_ns() const { return unsettled_completion_ ? kInfinity : next_end_.smallest(); }

  // Ends the activity that completes next; next_completion_ns() must be finite and not later than `now_ns`.
  Completion complete(double now_ns);

  // Rate and load, as of the last settle.
  double level(std::int32_t class_id) const { return classes_[class_id]->level; }
  double class_rate(std::int32_t class_id) const {
    return classes_[class_id]->level * classes_[class_id]->weight;
  }
  double load(std::int32_t resource) const { return resources_[resource]->load; }
  double capacity(std::int32_t resource) const { return resources_[resource]->capacity; }
  bool saturated(std::int32_t resource) const { return resources_[resource]->saturated(); }
  // Whether a resource of the class is saturated.
  bool contended(std::int32_t class_id) const;
  // The saturated resource that holds the class below its cap, kNone if it runs at its cap.
  std::int32_t bottleneck(std::int32_t class_id) const {
    const Resource* bottleneck = classes_[class_id]->bottleneck;
    return bottleneck == nullptr ? kNone : bottleneck->id;
  }
  // Time that the activities of a class have lost so far, against the class at its cap, because links held
  // them back; as of the last start or completion in the class. An activity loses the growth of this value
  // while it runs.
  double lost_on_links_ns(std::int32_t class_id) const { return classes_[class_id]->lost_on_links_ns; }
  std::int32_t active(std::int32_t class_id) const {
    return static_cast<std::int32_t>(classes_[class_id]->ends.size());
  }
  // Token of the activity that ends next; the class must be active.
  std::uint32_t next_token(std::int32_t class_id) const { return classes_[class_id]->ends.front().token; }
  double cap(std::int32_t class_id) const { return classes_[class_id]->cap; }

  // Work that has gone through a resource so far.
  double carried(std::int32_t resource, double now_ns) const;

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Loads are sums of up to a few hundred rates; a resource counts as saturated within this relative
  // distance.
  static constexpr double kTolerance = 1e-9;
  // Wider than kTolerance and than the drift of summed differences.
  static constexpr double kMargin = 1e-6;

  struct End {
    double virtual_time = 0;
    double weight = 1;
    std::uint32_t sequence = 0;
    std::uint32_t token = 0;
  };

  // Branchless, see first_queue.hpp.
  struct EndsLater {
    bool operator()(const End& a, const End& b) const {
      const bool later = a.virtual_time > b.virtual_time;
      const bool same = a.virtual_time == b.virtual_time;
      const bool younger = a.sequence > b.sequence;
      return later | (same & younger);
    }
  };

  struct Resource;

  struct Part {  // use of a resource by a class
    Resource* resource = nullptr;
    double coefficient = 1;
  };

  // Access to classes and resources is random: aligned, each occupies as few cache lines as possible. They
  // never move, and point to each other.
  struct alignas(64) Class {
    double weight = 0;          // of all active activities
    double settled_weight = 0;  // weight that the current loads account for
    double level = 0;
    double cap = 0;
    double virtual_time = 0;
    double since_ns = 0;        // virtual_time and done are as of this time
    double first_end = 0;       // virtual time at which the next activity ends
    double counted_at_cap = 0;  // weight times cap, as counted in Resource::users_at_caps
    Resource* bottleneck = nullptr;
    double done = 0;  // work of all activities
    double loss = 0;  // share of the cap that a link takes from the class
    double lost_on_links_ns = 0;
    std::int32_t id = 0;
    std::int32_t part_count = 0;
    std::uint32_t mark = 0;  // member of the solve with this number
    bool changed = false;
    bool listed = false;              // in the resources' user lists
    FirstQueue<End, EndsLater> ends;  // by (virtual_time, sequence)
    std::array<Part, kMaxUses> part_array{};
    std::array<std::int32_t, kMaxUses> user_slot{};  // position in Resource::users

    std::span<const Part> parts() const { return {part_array.data(), static_cast<std::size_t>(part_count)}; }
  };

  struct User {
    Class* of = nullptr;
    double coefficient = 1;
    std::int32_t part = 0;  // position in Class::part_array
  };

  struct alignas(64) Resource {
    double load = 0;
    double nearly_full = 0;    // load at which the resource counts as saturated
    double never_full = 0;     // users_at_caps below this value cannot saturate the resource
    double users_at_caps = 0;  // load if all users ran at their caps
    double capacity = 0;
    std::int32_t id = 0;
    std::uint32_t holds = 0;  // classes with their bottleneck here
    bool bounded = true;      // all users have a cap
    bool link = false;
    // Scratch of the solve with the number `mark`, over its members:
    std::uint32_t mark = 0;
    double room = 0;                    // capacity without the load of non-members
    double demand = 0;                  // sum of coefficient times weight of open classes
    double demand_at_caps = 0;          // load if all members ran at their caps
    std::uint32_t included = 0;         // members that had their bottleneck here
    std::uint32_t members = 0;          // members among `users`
    std::int32_t open = 0;              // classes that can still rise
    std::int32_t touched_slot = kNone;  // in touched_
    std::vector<User> users;            // classes with active activities

    bool saturated() const { return load >= nearly_full; }
    void change_load(double delta) {
      load += delta;
      if (load < 0) load = 0;
    }
  };

  struct PartOfSlot {
    std::int32_t slot = 0;  // in touched_
    double coefficient = 1;
  };

  struct LoadBefore {
    Resource* resource = nullptr;
    double load = 0;
  };

  // Classes that one resource holds back: a range of `members_`.
  struct Share {
    Resource* resource = nullptr;
    double level = 0;                          // 0: the resource does not hold all of them back
    std::size_t begin = 0, held = 0, end = 0;  // classes from `held` on have not changed
  };

  // Capacity of a resource for the members that can still rise. Only a resource that cannot serve all members
  // at their caps decides anything.
  struct Tight {
    double room = 0;
    double demand = 0;
    double level = 0;     // level at which it became full; infinity if it holds no member back
    double fills_at = 0;  // level at which it will be full, as of this round; infinity if never
    std::int32_t open = 0;
  };

  // A member that can still rise.
  struct Open {
    double cap = 0;
    double weight = 0;
    std::uint64_t parts = 0;   // bits of the member's resources
    std::uint32_t member = 0;  // position in members_
  };

  static void advance(Class& c, double now_ns) {
    if (now_ns > c.since_ns) {
      const double each = c.level * (now_ns - c.since_ns);
      c.virtual_time += each;
      c.done += each * c.settled_weight;
      c.lost_on_links_ns += c.loss * (now_ns - c.since_ns);
      c.since_ns = now_ns;
    }
  }
  static void list(Class& c);
  static void unlist(Class& c);
  void mark_changed(Class& c);
  static void mark_unbounded(const Class& c);
  // Corrects the loss for the time since the last advance.
  static void find_loss(Class& c, double now_ns) {
    const double before = c.loss;
    c.loss = c.bottleneck != nullptr && c.bottleneck->link ? 1 - c.level / c.cap : 0;
    if (c.loss != before) c.lost_on_links_ns += (before - c.loss) * (now_ns - c.since_ns);
  }
  static void count_at_cap(Class& c);
  // True if a resource is not saturated and cannot become saturated: then it decides nothing.
  static bool idle_at_caps(const Resource& r) {
    const bool fits = r.users_at_caps < r.never_full;
    const bool has_room = r.load < r.nearly_full;
    return r.bounded & fits & has_room;  // branchless
  }
  bool settle_replaced(Class& c, double now_ns);
  bool settle_without_solving(Class& c, double now_ns);
  bool settle_within_class(Class& c, double now_ns);
  static Resource* bottleneck_of_change(const Class& c);
  bool find_shares();
  void find_level(Share& share);
  bool change_loads(const Share& share);
  void restore_loads();
  bool settle_at_bottlenecks(double now_ns);
  void solve(double now_ns);
  void include(Class& c);
  void include_held_by_saturated();
  bool include_overtaken();
  bool find_tight();
  void fill();
  void fill_round();
  std::int32_t full_slot(std::uint32_t member, double reached) const;
  void close(const Open& open, double level, Resource* bottleneck);
  void apply(double now_ns);
  void commit(Class& c, double level, Resource* bottleneck, double now_ns);
  void schedule(Class& c, double now_ns);
  void reschedule(const Class& c, double now_ns);

  std::vector<std::unique_ptr<Class>> classes_;
  std::vector<std::unique_ptr<Resource>> resources_;
  Tournament next_end_;                    // by class: time of the next end
  std::vector<Class*> changed_;            // classes to settle
  std::vector<Class*> members_;            // classes of the current solve
  std::vector<Resource*> touched_;         // resources of the current solve
  std::vector<PartOfSlot> member_parts_;   // parts of the members, one member after another
  std::vector<std::uint32_t> first_part_;  // by position in members_, and one more
  std::vector<Class*> held_;               // classes held back by one of touched_; scratch
  std::vector<Tight> tight_;               // by position in touched_
  std::vector<Open> open_;
  std::vector<Share> shares_;             // of the changed classes, while they are settled
  std::size_t load_changes_ = 0;          // entries of loads_before_ that belong to the current settle
  std::vector<LoadBefore> loads_before_;  // in the order of the changes
  std::vector<double> levels_;            // by position in members_
  std::vector<Resource*> bottlenecks_;    // by position in members_; null: none
  double next_cap_ = 0;                   // smallest cap of open_
  std::size_t next_to_expand_ = 0;
  std::uint32_t sequence_ = 0;
  bool unsettled_completion_ = false;  // next_end_ holds a key in the past
  std::uint32_t solve_number_ = 0;
};

}  // namespace tritax
