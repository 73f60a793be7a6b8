#include "sim/study/calibrate/microbench_model.hpp"

#include <algorithm>

#include "sim/simulate.hpp"

namespace tritax {

namespace {

// First start and last end of one kernel.
class KernelTime : public SimulationObserver {
 public:
  explicit KernelTime(int kernel) : kernel_(static_cast<std::uint32_t>(kernel)) {}
  void kernel_started(std::uint32_t kernel, double time_ns) override {
    if (kernel == kernel_) started_ns_ = time_ns;
  }
  void kernel_finished(std::uint32_t kernel, double time_ns) override {
    if (kernel == kernel_) ended_ns_ = time_ns;
  }
  double duration_ns() const { return ended_ns_ - started_ns_; }

 private:
  std::uint32_t kernel_;
  double started_ns_ = 0;
  double ended_ns_ = 0;
};

}  // namespace

double simulated_time_us(const Schedule& schedule, const Microbench& bench, const MicrobenchRow& row,
                         const Machine& machine) {
  KernelTime kernel(row.kernel);
  SimulationOptions options = found_in_caches(bench.flush_bytes);
  if (row.metric == MicrobenchMetric::kernel_time) options.observer = &kernel;
  const SimulationResult result = simulate(schedule, bench.sustained ? sustained(machine) : machine, options);
  double time_ns = 0;
  switch (row.metric) {
    case MicrobenchMetric::wall_time:
      time_ns = result.makespan_ns;
      break;
    case MicrobenchMetric::host_time:
      for (const RankResult& rank : result.ranks) time_ns = std::max(time_ns, rank.kernels_ns);
      time_ns = result.makespan_ns - time_ns;
      break;
    case MicrobenchMetric::kernel_time:
      time_ns = kernel.duration_ns();
      break;
    case MicrobenchMetric::device_time:
    case MicrobenchMetric::clock:
    case MicrobenchMetric::matmul_spread:
    case MicrobenchMetric::copy_spread:
      for (const RankResult& rank : result.ranks) time_ns = std::max(time_ns, rank.kernels_ns);
      break;
  }
  return time_ns * 1e-3;
}

}  // namespace tritax
