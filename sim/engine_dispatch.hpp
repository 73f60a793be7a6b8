// Workgroups on compute units: which starts where and when.
//
// Dispatch owns the kernels that wait for compute units, the places of workgroup states, and the list of the
// workgroups that it has sent. It makes the states of kernels, before the run, and the states of workgroups;
// it changes the dispatcher and the compute units of a GPU. It starts no workgroup: one that starts later
// gets an event, and the loop takes one that starts at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine_run.hpp"

namespace tritax::engine {

class Dispatch {
 public:
  // With `places`, which name every workgroup, each compute unit takes its workgroups in the order of
  // `places`.
  Dispatch(Run& run, std::span<const Placed> places);

  [[gnu::noinline]] void begin_kernel(std::uint32_t kernel, double now);
  // A workgroup has ended; its successors on the compute unit continue its path.
  void end_workgroup(std::uint32_t id, double now);

  // A place for the state of a workgroup, or of a member of its group (engine_group.cpp); and back.
  std::uint32_t take_place(std::uint32_t kernel, std::uint32_t number);
  void give_back(std::uint32_t place) {
    run_.workgroups[place].kernel = kNobody;
    free_places_.push_back(place);
  }

  // The next of the workgroups that were sent and start at once; kNobody: there is none.
  std::uint32_t take_starting() {
    if (next_starting_ < starting_.size()) return starting_[next_starting_++];
    starting_.clear();
    next_starting_ = 0;
    return kNobody;
  }
  // All workgroups so far, in the order in which they were sent.
  const std::vector<Placed>& sent() const { return sent_; }

 private:
  struct PlaceQueue {
    std::vector<Placed> workgroups;
    std::size_t head = 0;  // next workgroup
  };
  struct OfGpu {
    std::vector<std::uint32_t> running;    // kernels with workgroups left to dispatch, in launch order
    std::vector<double> free_ns;           // by die: time from which it dispatches the next workgroup
    std::vector<PlaceQueue> place_queues;  // by compute unit; empty unless places are given
  };
  OfGpu& of_gpu(std::int32_t rank) { return gpus_[static_cast<std::size_t>(rank)]; }

  void index_kernels();
  void number_workgroups_of_dies(const Kernel& kernel, KernelState& state) const;
  void find_cold_code();
  void index_places(std::span<const Placed> places);

  void dispatch(std::int32_t rank, std::int32_t die, double now);
  void dispatch_kernel(std::uint32_t kernel, std::int32_t die, double now);
  [[gnu::noinline]] void dispatch_by_place(std::int32_t rank, std::int32_t die, double now);
  [[gnu::noinline]] void start_gang(std::uint32_t kernel, double now);
  [[gnu::noinline]] void start_gang_by_place(std::uint32_t kernel, double now);
  void send(const Placed& placed, double now);

  Run& run_;
  const bool placed_;                       // true if `places` was given
  std::vector<OfGpu> gpus_;                 // by rank
  std::vector<std::uint32_t> free_places_;  // free entries of Run::workgroups
  std::vector<Placed> sent_;                // in dispatch order
  std::vector<std::uint32_t> last_sent_;    // places of the workgroups sent by the last call of dispatch()
  std::vector<std::uint32_t> starting_;     // places of workgroups that start at the current time
  std::size_t next_starting_ = 0;           // in starting_
};

}  // namespace tritax::engine
