// Host programs: launches in turns, synchronisation, and barriers of all hosts.
//
// Hosts owns the state of the programs, the turns to launch, and the barrier. It posts work into streams and
// marks kernels as launched; the loop hands it the end of work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine_copies.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_streams.hpp"

namespace tritax::engine {

class Hosts {
 public:
  Hosts(Run& run, Streams& streams, CopyQueues& copies);

  [[gnu::noinline]] void step(std::int32_t rank, double now);
  // A kernel or transfer of a stream has ended.
  [[gnu::noinline]] void work_ended(std::int32_t rank, std::int32_t stream, const Path& path, double now);

  // With free launches: all zero except barriers and first turns.
  const HostCosts& costs() const { return costs_; }
  // Gap from the end of the previous work in the stream.
  double gap_before(std::int32_t kernel, bool in_graph) const;
  bool all_done() const;
  // Appends the hosts that wait to the report of a stall, which lists at most `most`.
  void list_waiting(std::string& text, int listed, int most) const;
  // The path of the last end of a rank: of its program, or of a kernel if the program does not wait for it.
  Path last_path(std::int32_t rank) const;

 private:
  enum class Wait : std::uint8_t { nothing, streams, barrier, done };
  struct Host {
    std::uint32_t pc = 0;
    Wait wait = Wait::nothing;
    std::int32_t wait_stream = -1;    // -1: all streams
    std::uint32_t busy_op = kNobody;  // operation with a known end in the future
    double synchronized_ns = -1;      // kernels that end up to this time were waited for by the host
    bool has_launched = false;
    Path path;
  };
  bool run_op(std::int32_t rank, const HostOp& op, double& now);
  double turn_to_launch(std::int32_t rank, double now);
  void launch(std::int32_t rank, const GraphNode& node, double now, bool in_graph);
  void post_point(std::int32_t rank, const HostOp& op, double now);
  void post(std::int32_t rank, std::int32_t stream, Streams::Work work);
  void finish_synchronize(std::int32_t rank, double now);
  void arrive_at_barrier(std::int32_t rank, double now);
  Host& host_of(std::int32_t rank) { return hosts_[static_cast<std::size_t>(rank)]; }

  Run& run_;
  Streams& streams_;
  CopyQueues& copies_;
  HostCosts costs_;
  std::vector<Host> hosts_;
  std::vector<std::int32_t> at_barrier_;
  std::vector<char> harness_barriers_;  // by number of the barrier
  std::size_t barriers_passed_ = 0;
  std::vector<double> launches_free_ns_;  // by node: time from which another host thread can launch
};

}  // namespace tritax::engine
