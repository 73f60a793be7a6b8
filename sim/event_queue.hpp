// The event queue of the clock: events are ordered by (time, sequence), so events of equal time keep the
// order in which they were pushed.
//
// Events pushed one after another with rising times, such as the starts of the workgroups of a die or the
// waiters that one flag wakes, form a run. Only the first event of a run is in the priority queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/first_queue.hpp"

namespace tritax {

template <typename Payload>
class EventQueue {
 public:
  struct Event {
    double time_ns = 0;
    std::uint64_t sequence = 0;
    Payload payload{};
  };

  void push(double time_ns, const Payload& payload) {
    const std::uint32_t place = take_place();
    // Field by field: a copy of a just assembled entry would wait for the stores of its own parts.
    Entry& entry = entries_[place];
    entry.event.time_ns = time_ns;
    entry.event.sequence = sequence_++;
    entry.event.payload = payload;
    entry.next = kNone;
    if (last_ != kNone && entries_[last_].event.time_ns <= time_ns) {
      entries_[last_].next = place;
    } else {
      add_run(place);
      next_time_ns_ = std::min(next_time_ns_, time_ns);
    }
    last_ = place;
  }

  bool empty() const { return runs_.empty(); }

  // Infinity if the queue is empty.
  double next_time_ns() const { return next_time_ns_; }

  const Payload& next() const { return entries_[runs_.front().place].event.payload; }

  Event pop() {
    const std::uint32_t place = runs_.pop().place;
    const Entry entry = entries_[place];
    if (entry.next != kNone) add_run(entry.next);
    if (place == last_) last_ = kNone;
    entries_[place].next = free_;
    free_ = place;
    next_time_ns_ = runs_.empty() ? kNever : runs_.front().time_ns;
    return entry.event;
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Entry {
    Event event;
    std::uint32_t next = kNone;  // next entry of the run, or next free place
  };

  struct Run {  // first event of the run
    double time_ns = 0;
    std::uint64_t sequence = 0;
    std::uint32_t place = kNone;  // index into entries_
  };

  // Branchless, see first_queue.hpp.
  struct Later {
    bool operator()(const Run& a, const Run& b) const {
      const bool later = a.time_ns > b.time_ns;
      const bool same = a.time_ns == b.time_ns;
      const bool younger = a.sequence > b.sequence;
      return later | (same & younger);
    }
  };

  std::uint32_t take_place() {
    if (free_ == kNone) {
      entries_.emplace_back();
      return static_cast<std::uint32_t>(entries_.size() - 1);
    }
    const std::uint32_t place = free_;
    free_ = entries_[place].next;
    return place;
  }

  void add_run(std::uint32_t place) {
    const Event& event = entries_[place].event;
    runs_.push({event.time_ns, event.sequence, place});
  }

  std::vector<Entry> entries_;
  FirstQueue<Run, Later> runs_;
  std::uint32_t free_ = kNone;  // first free index of entries_
  std::uint32_t last_ = kNone;  // index of the event pushed last, while it is in the queue
  double next_time_ns_ = kNever;
  std::uint64_t sequence_ = 0;
};

}  // namespace tritax
