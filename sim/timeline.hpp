// Records the timeline of a simulation.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "model/timeline/timeline.hpp"
#include "sim/counter_observer.hpp"
#include "sim/observer.hpp"

namespace tritax {

// Records a simulation of `schedule`, which must outlive it.
class TimelineRecorder : public SimulationObserver, public CounterObserver {
 public:
  explicit TimelineRecorder(const Schedule& schedule);

  void op_started(const OpPlace& place, double time_ns) override;
  void op_finished(const OpPlace& place, double time_ns) override;
  void kernel_started(std::uint32_t kernel, double time_ns) override;
  void kernel_finished(std::uint32_t kernel, double time_ns) override;
  void host_op_started(int rank, std::uint32_t host_op, double time_ns) override;
  void host_op_finished(int rank, std::uint32_t host_op, double time_ns) override;
  void copy_started(int rank, std::uint32_t host_op, int engine, double time_ns) override;
  void copy_finished(int rank, std::uint32_t host_op, double time_ns) override;
  void link_rate(int edge, double time_ns, double gb_per_s) override;
  void clock_changed(int rank, double time_ns, double ghz) override;
  void op_reads(const OpPlace& place, int from, const ReadBytes& bytes) override;
  void copy_reads(int rank, std::uint32_t host_op, int from, const ReadBytes& bytes) override;

  // Moves the timeline out. Operations that have not finished (a search bound was passed) end at the last
  // recorded time.
  Timeline take();
  // Moves the counters of the timeline out; they name its intervals by number.
  Counters take_counters();

 private:
  struct OpenOp {
    std::uint32_t op = 0;
    std::size_t interval = 0;
  };

  const Schedule& schedule_;
  Timeline timeline_;
  Counters counters_;
  double now_ns_ = 0;
  std::vector<std::vector<std::vector<OpenOp>>> open_ops_;    // by kernel, workgroup
  std::vector<std::vector<std::int32_t>> streams_of_kernel_;  // by kernel: the stream of each of its launches
  std::vector<std::uint32_t> launches_;                       // by kernel: launches so far
  std::vector<std::size_t> open_kernels_;                     // by kernel: interval
  std::vector<std::size_t> open_host_ops_;                    // by rank: interval
};

}  // namespace tritax
