// Happens-before: which operations of a schedule are ordered before which others, independent of timing.
//
// Law (Lamport 1978; vector clocks as in Flanagan and Freund, "FastTrack", PLDI 2009). Every workgroup is an
// agent that counts its operations; an epoch (agent, count) names one operation. Every agent carries a vector
// clock: for each other agent the last operation that is ordered before it. Clocks grow by
//
//   program order    an operation is after all earlier operations of its workgroup (also after stores: an
//                    early read is reported as a read of a write in flight, and a signal drains stores);
//   signal → wait    the wait takes over the clock of every signal without which it could not have ended;
//   kernel           starts after the host's launch and after the previous kernel of its stream, and its end
//                    is after all its workgroups;
//   copy             by a copy engine: as a kernel of one workgroup with one operation;
//   item             of a work queue (model/schedule/items.hpp): an agent of its own, because any workgroup
//                    can draw it. The item is after the start of its kernel and after the waits that precede
//                    all claims of its queue; the end of the kernel is after the item;
//   event            operations after a wait in its stream are after operations before the record in its
//                    stream;
//   host             a synchronisation is after the kernels it waits for, a barrier after all hosts that
//                    arrived.
//
// A relaxed signal counts and orders nothing. A signal that sets the counter starts anew: earlier signals are
// forgotten, and a wait that sees the counter only after the set takes over none of their clocks.
//
// Scopes (schedule.hpp): a signal orders a wait on the same GPU if both have gpu scope or wider, a wait on
// another GPU only if both have system scope.
//
// A signal that comes early by chance orders nothing. A wait for n takes over a signal s only if the signals
// seen so far that are not after s sum to less than n: then no other arrival order could have ended the wait
// without s.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "model/schedule/items.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// One operation: number `time` of the operations that its agent started, counted from 1.
struct Epoch {
  std::uint32_t agent = 0;
  std::uint32_t time = 0;
};

// For each agent the last known operation; agents that are not listed are at 0.
//
// Most clocks of a kernel have what was known at its start in common. They share it, as a base, and list only
// what they have learned since: copying and joining them costs that.
class VectorClock {
 public:
  void advance(Epoch epoch);            // raises one agent's entry to at least epoch.time
  void join(const VectorClock& other);  // entry-wise maximum
  bool contains(Epoch epoch) const;
  void share();  // makes all that is known a base of the copies of this clock

 private:
  using Entries = std::vector<Epoch>;  // sorted by agent
  static void join(Entries& entries, const Entries& others);

  std::vector<std::shared_ptr<const Entries>> bases_;
  Entries entries_;  // beyond the bases
};

// Follows one run. Call it in simulated order; it holds a reference to the schedule.
class HappensBefore {
 public:
  explicit HappensBefore(const Schedule& schedule);

  void host_op_started(int rank, std::uint32_t host_op);
  void host_op_finished(int rank, std::uint32_t host_op);
  void kernel_started(std::uint32_t kernel);
  void kernel_finished(std::uint32_t kernel);

  // A copy by a copy engine, posted by the host operation; returns its epoch.
  Epoch copy_started(int rank, std::uint32_t host_op);
  void copy_finished(int rank, std::uint32_t host_op);

  // Operations are named as in OpPlace: an operation of an item by the workgroup that runs the item. Counts
  // the operation and returns its epoch.
  Epoch op_started(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op);
  // Publishes the signal of the operation, or lets its wait acquire.
  void op_finished(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op);

  // True if `earlier` is ordered before this operation, which its workgroup executes now.
  bool is_before(Epoch earlier, std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op) const;
  bool is_before_copy(Epoch earlier, int rank, std::uint32_t host_op) const;

 private:
  struct OpenSignal {
    std::uint32_t op = 0;
    Epoch epoch;
    VectorClock clock;  // clock that the signal releases, as of its start
  };
  struct Agent {
    VectorClock clock;
    std::uint32_t time = 0;
    std::uint32_t launch = 0;  // number of the kernel launch that the clock belongs to
    std::vector<OpenSignal> open_signals;
  };
  struct KernelState {
    VectorClock start;
    std::uint32_t launches = 0;
    std::int32_t stream = 0;  // of the running launch
  };
  struct Launch {
    enum class Kind : std::uint8_t { kernel, copy, record, wait };
    std::uint32_t item = 0;  // kernel; for a copy the host operation; else index into records_
    VectorClock host;
    Kind kind = Kind::kernel;
  };
  struct Stream {
    std::deque<Launch> queue;  // launched, in order; the front may be running
    bool running = false;
    VectorClock done;  // joined clocks of all finished launches
  };
  struct Record {  // of an event
    bool happened = false;
    VectorClock clock;
  };
  struct Release {
    Epoch epoch;
    VectorClock clock;
    std::int64_t value = 0;
    int rank = 0;  // of the signalling workgroup
    Scope scope = Scope::gpu;
    bool publishes = true;  // false for a relaxed signal
  };
  struct Flag {
    std::int64_t value = 0;
    bool was_set = false;
    std::vector<Release> releases;  // since the last signal that sets the flag, including that signal
  };

  // Agents of a kernel: first its workgroups, then its items.
  std::uint32_t agent_of(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op) const;
  const Op& op_at(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op) const;
  Flag& flag_at(std::int16_t flag, int rank, std::int32_t index);
  void enqueue(std::int32_t kernel, std::int32_t stream, const VectorClock& host);
  void post(int rank, const HostOp& op, std::uint32_t host_op);
  void pass_points(int rank);
  std::uint32_t agent_of_copy(int rank, std::uint32_t host_op) const {
    return first_copy_[static_cast<std::size_t>(rank)] + host_op;
  }
  void release(Agent& agent, int rank, std::uint32_t op_index, const Op& op);
  void acquire(Agent& agent, int rank, const Op& op);
  void acquire_of_queue(Agent& agent, std::uint32_t kernel, std::uint32_t program);

  const Schedule& schedule_;
  std::vector<std::uint32_t> first_agent_;           // by kernel
  std::vector<std::vector<ItemQueue>> item_queues_;  // by kernel
  std::vector<Agent> agents_;
  std::vector<KernelState> kernels_;
  std::vector<std::map<std::int32_t, Stream>> streams_;  // by rank, stream
  std::vector<std::uint32_t> first_copy_;                // by rank: agent of its first host operation
  std::vector<Record> records_;                          // of events, in posting order
  std::vector<std::map<std::int32_t, std::uint32_t>> last_record_;  // by rank and event
  std::vector<VectorClock> hosts_;                                  // by rank
  std::vector<std::size_t> barriers_reached_;                       // by rank
  std::vector<VectorClock> barriers_;                               // joined clocks of the hosts that arrived
  std::vector<std::size_t> first_flag_;                             // by flag array
  std::vector<Flag> flags_;
};

}  // namespace tritax
