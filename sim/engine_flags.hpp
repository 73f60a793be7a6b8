// Flags: counters, signals on their way to them, and workgroups that wait for them.
//
// Flags owns the counters and the signals on their way. It changes the part of a workgroup that waits or
// signals, and wakes a workgroup by an event of the loop.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine_run.hpp"

namespace tritax::engine {

class Flags {
 public:
  explicit Flags(Run& run);

  std::size_t count() const { return flags_.size(); }
  // The counter on `rank` that an operation names, and its value.
  std::uint32_t flag_of(std::int32_t rank, const Op& op) const;
  std::int32_t value_of(std::uint32_t flag) const { return flags_[flag].value; }

  bool publishes(const WorkgroupState& wg, const Op& op) const;
  double poll_ns(const WorkgroupState& wg, const Op& op) const;
  // A signal: the time until the counter can be set, and then its way to the counter.
  double begin_signal(WorkgroupState& wg, const Op& op, double now);
  void deliver(WorkgroupState& wg, const Op& op, const Path& path, double now);
  void arrive(std::uint32_t arrival, double now);
  // The workgroup waits until an event resumes it.
  void begin_wait(WorkgroupState& wg, std::uint32_t id, const Op& op, double now);
  // A claim is on its way to the counter of its queue: the number of claims on their way; and the number that
  // the claim has drawn when its answer has arrived.
  std::int32_t begin_claim(std::uint32_t flag) { return ++flags_[flag].pollers; }
  std::int32_t end_claim(std::uint32_t flag) {
    --flags_[flag].pollers;
    return flags_[flag].value++;
  }

 private:
  struct Flag {
    std::int32_t value = 0;
    std::int32_t pollers = 0;
    std::uint32_t first_waiter = kNobody;
  };
  struct Arrival {  // a signal on its way to a flag
    std::uint32_t flag = 0;
    std::int32_t value = 0;
    std::int32_t from_die = -1;  // die of the signalling workgroup on the same GPU; -1: from a peer
    FlagChange change = FlagChange::add;
    Path path;
  };
  void raise(const Arrival& arrival, double now);
  void wake_waiters(std::uint32_t flag, const Arrival& arrival, double now);
  std::int32_t& residents_of(const WorkgroupState& wg);

  Run& run_;
  std::vector<Flag> flags_;
  std::vector<std::uint32_t> flag_base_;  // [rank * arrays + array]
  std::vector<Arrival> arrivals_;
  std::vector<std::uint32_t> free_arrivals_;
};

}  // namespace tritax::engine
