// The clock's queue: events ordered by (time, sequence), so equal times keep the order in which they were
// pushed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

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
    events_.push_back({time_ns, sequence_++, payload});
    std::push_heap(events_.begin(), events_.end(), Later{});
  }

  bool empty() const { return events_.empty(); }

  double next_time_ns() const {
    return events_.empty() ? std::numeric_limits<double>::infinity() : events_.front().time_ns;
  }

  Event pop() {
    std::pop_heap(events_.begin(), events_.end(), Later{});
    const Event event = events_.back();
    events_.pop_back();
    return event;
  }

  std::uint64_t pushed() const { return sequence_; }

 private:
  // A type, for the heap's functions to be compiled with it.
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.sequence > b.sequence;
    }
  };

  std::vector<Event> events_;
  std::uint64_t sequence_ = 0;
};

}  // namespace tritax
