// The timeline: what ran where and when in one simulation, and its form as a Chrome/Perfetto trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "sim/observer.hpp"

namespace tritax {

struct Topology;

struct OpInterval {
  OpPlace place;
  OpKind kind = OpKind::barrier;
  std::uint32_t launch = 0;  // of the kernel, counted from 0
  double begin_ns = 0;
  double end_ns = 0;
};

struct KernelInterval {
  std::uint32_t kernel = 0;
  std::int32_t stream = 0;
  double begin_ns = 0;
  double end_ns = 0;
};

struct HostInterval {
  std::int32_t rank = 0;
  std::uint32_t host_op = 0;
  double begin_ns = 0;
  double end_ns = 0;
};

// The sum of rates over one link direction from `time_ns` on.
struct LinkSample {
  std::int32_t edge = 0;  // of the topology
  double time_ns = 0;
  double gb_per_s = 0;
};

// All in order of their begin.
struct Timeline {
  std::vector<OpInterval> ops;
  std::vector<KernelInterval> kernels;
  std::vector<HostInterval> host_ops;
  std::vector<LinkSample> links;
};

// Records a simulation of `schedule`, which must outlive it.
class TimelineRecorder : public SimulationObserver {
 public:
  explicit TimelineRecorder(const Schedule& schedule);

  void op_started(const OpPlace& place, double time_ns) override;
  void op_finished(const OpPlace& place, double time_ns) override;
  void kernel_started(std::uint32_t kernel, double time_ns) override;
  void kernel_finished(std::uint32_t kernel, double time_ns) override;
  void host_op_started(int rank, std::uint32_t host_op, double time_ns) override;
  void host_op_finished(int rank, std::uint32_t host_op, double time_ns) override;
  void link_rate(int edge, double time_ns, double gb_per_s) override;

  // Moves the timeline out. What has not finished (a search bound was passed) ends at the last time that was
  // seen.
  Timeline take();

 private:
  struct OpenOp {
    std::uint32_t op = 0;
    std::size_t interval = 0;
  };

  const Schedule& schedule_;
  Timeline timeline_;
  double now_ns_ = 0;
  std::vector<std::vector<std::vector<OpenOp>>> open_ops_;    // by kernel, workgroup
  std::vector<std::vector<std::int32_t>> streams_of_kernel_;  // by kernel: the stream of each of its launches
  std::vector<std::uint32_t> launches_;                       // by kernel: started so far
  std::vector<std::size_t> open_kernels_;                     // by kernel: interval
  std::vector<std::size_t> open_host_ops_;                    // by rank: interval
};

// The trace as JSON ("traceEvents"), to open in ui.perfetto.dev or chrome://tracing: one process a GPU with a
// track for the host, each stream, each compute unit and, beside it, its stores, copies and atomic adds (they
// overlap the operations that follow them), and one process with a counter a link. Times are in microseconds
// with nanosecond digits. Compute units that hold several workgroups at once get a track for each ("CU 7 slot
// 2").
std::string timeline_to_perfetto_json(const Timeline& timeline, const Schedule& schedule,
                                      const Topology& topology);

}  // namespace tritax
