// The clock's queue: events ordered by (time, sequence), so equal times keep the order in which they were
// pushed.
#pragma once

#include <cstdint>
#include <limits>

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

  void push(double time_ns, const Payload& payload) { events_.push({time_ns, sequence_++, payload}); }

  bool empty() const { return events_.empty(); }

  double next_time_ns() const {
    return events_.empty() ? std::numeric_limits<double>::infinity() : events_.front().time_ns;
  }

  const Payload& next() const { return events_.front().payload; }

  Event pop() { return events_.pop(); }

  std::uint64_t pushed() const { return sequence_; }

 private:
  // Without a branch, see first_queue.hpp.
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      const bool later = a.time_ns > b.time_ns;
      const bool same = a.time_ns == b.time_ns;
      const bool younger = a.sequence > b.sequence;
      return later | (same & younger);
    }
  };

  FirstQueue<Event, Later> events_;
  std::uint64_t sequence_ = 0;
};

}  // namespace tritax
