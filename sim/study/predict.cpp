#include "sim/study/predict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "model/core/error.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/parts/library_gemm.hpp"
#include "sim/simulate.hpp"

namespace tritax {

namespace {

struct Unit {
  std::string_view name;
  double scale;  // ns, bytes/ns, FLOP/ns or bytes of one unit
};

constexpr std::array<Unit, 4> kTimeUnits{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr std::array<Unit, 3> kBandwidthUnits{{{"GB/s", 1}, {"GiB/s", 1.073741824}, {"TB/s", 1e3}}};
constexpr std::array<Unit, 2> kRateUnits{{{"TFLOP/s", 1e3}, {"GFLOP/s", 1}}};
constexpr std::array<Unit, 1> kRatioUnits{{{"x", 1}}};
constexpr std::array<Unit, 1> kShareUnits{{{"%", 0.01}}};
constexpr std::array<Unit, 4> kByteUnits{{{"B", 1}, {"MB", 1e6}, {"GB", 1e9}, {"GiB", 1073741824}}};

template <typename Units>
double find_unit(const Units& units, Metric metric, std::string_view name, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.scale;
    names.push_back(unit.name);
  }
  throw UserError(fmt::format("{}: unit = \"{}\" does not fit metric \"{}\"; allowed: {}", where, name,
                              kMetricNames[static_cast<std::size_t>(metric)], fmt::join(names, ", ")));
}

// Notes when kernels ran and when the host called for them.
class SpanRecorder : public SimulationObserver {
 public:
  explicit SpanRecorder(const Schedule& schedule) : schedule_(schedule), kernels_(schedule.kernels.size()) {}

  void kernel_started(std::uint32_t kernel, double time_ns) override { kernels_[kernel].start_ns = time_ns; }
  void kernel_finished(std::uint32_t kernel, double time_ns) override { kernels_[kernel].end_ns = time_ns; }

  void host_op_started(int rank, std::uint32_t host_op, double time_ns) override {
    const auto& program = schedule_.host[static_cast<std::size_t>(rank)];
    const HostOp& op = program[host_op];
    if (op.kind == HostOpKind::launch) {
      // A collective is one call to its user: the library's own work belongs to the kernel that it launches.
      const bool collective = host_op > 0 && program[host_op - 1].is_work(kCollectiveCall);
      kernels_[static_cast<std::size_t>(op.kernel)].call_ns = collective ? collective_ns_[rank] : time_ns;
    } else if (op.kind == HostOpKind::graph_launch) {
      for (const GraphNode& node : schedule_.graphs[static_cast<std::size_t>(op.graph)]) {
        kernels_[static_cast<std::size_t>(node.kernel)].call_ns = time_ns;
      }
    } else if (op.is_work(kFrameworkGather)) {
      collective_ns_[rank] = time_ns;
    } else if (op.is_work(kCollectiveCall)) {
      const bool gathers = host_op > 0 && program[host_op - 1].is_work(kFrameworkGather);
      if (!gathers) collective_ns_[rank] = time_ns;
    }
  }

  // `call_ns`: host time of a GEMM call beyond its launch.
  std::vector<RankTimes> times(const Machine& machine, double call_ns) const {
    const CostTable costs(machine);
    std::map<int, std::array<Stretch, 3>> ranks;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      auto& stretches = ranks[schedule_.kernels[i].rank];
      const bool gemm = schedule_.kernels[i].tile.m > 0 || schedule_.kernels[i].name == kAddingKernel;
      const double gap_ns = kernel_gap_ns(machine.host, costs.of(schedule_.kernels[i]));
      for (Stretch* stretch : {&stretches[0], &stretches[gemm ? 1 : 2]}) stretch->add(kernels_[i], gap_ns);
    }
    std::vector<RankTimes> times;
    for (const auto& [rank, stretches] : ranks) {
      RankTimes& times_of_rank =
          times.emplace_back(RankTimes{stretches[0].span(), stretches[1].span(), stretches[2].span()});
      if (stretches[1].busy_ns == 0) continue;
      times_of_rank.all.idle_stream_ns += call_ns;
      times_of_rank.gemm.idle_stream_ns += call_ns;
    }
    return times;
  }

 private:
  struct KernelTimes {
    double call_ns = 0;
    double start_ns = 0;
    double end_ns = 0;
  };

  struct Stretch {
    double busy_ns = 0;
    double first_call_ns = std::numeric_limits<double>::infinity();
    double last_end_ns = 0;

    void add(const KernelTimes& kernel, double gap_ns) {
      busy_ns += gap_ns + kernel.end_ns - kernel.start_ns;
      first_call_ns = std::min(first_call_ns, kernel.call_ns);
      last_end_ns = std::max(last_end_ns, kernel.end_ns);
    }
    KernelSpan span() const {
      return busy_ns == 0 ? KernelSpan{} : KernelSpan{busy_ns, last_end_ns - first_call_ns};
    }
  };

  const Schedule& schedule_;
  std::vector<KernelTimes> kernels_;
  std::map<int, double> collective_ns_;  // by rank, of its latest call
};

double on_clock(const KernelSpan& span, Clock clock) {
  return clock == Clock::idle_stream ? span.idle_stream_ns : span.busy_stream_ns;
}

// Host time of the GEMM call that an event on an idle stream sees.
double gemm_call_ns(const Scenario& scenario, const Machine& machine) {
  const Workload& workload = *scenario.problem.workload;
  return workload.call_ns == nullptr ? 0 : workload.call_ns(pattern_of(scenario), scenario.problem, machine);
}

}  // namespace

Clock usual_clock(const Scenario& scenario) {
  return scenario.problem.workload->timed_by_host ? Clock::host : Clock::busy_stream;
}

double scale_of_unit(Metric metric, std::string_view unit, const std::string& where) {
  switch (metric) {
    case Metric::time:
    case Metric::gemm_time:
    case Metric::comm_time:
    case Metric::time_difference:
      return find_unit(kTimeUnits, metric, unit, where);
    case Metric::throughput:
      return find_unit(kRateUnits, metric, unit, where);
    case Metric::bandwidth:
    case Metric::link_bandwidth:
      return find_unit(kBandwidthUnits, metric, unit, where);
    case Metric::l2_hit:
    case Metric::llc_hit:
      return find_unit(kShareUnits, metric, unit, where);
    case Metric::hbm_bytes:
      return find_unit(kByteUnits, metric, unit, where);
    case Metric::speedup:
    case Metric::best_speedup:
      break;
  }
  return find_unit(kRatioUnits, metric, unit, where);
}

double Prediction::time_ns(Clock clock) const {
  if (clock == Clock::host) return makespan_ns;
  if (clock == Clock::kernel) return kernels_ns;
  double slowest = 0;
  for (const RankTimes& rank : ranks) slowest = std::max(slowest, on_clock(rank.all, clock));
  return slowest;
}

double Prediction::value(Metric metric, Clock clock) const {
  switch (metric) {
    case Metric::time:
      return time_ns(clock);
    case Metric::throughput:
      return flops / time_ns(clock);
    case Metric::bandwidth:
    case Metric::link_bandwidth: {
      double sum = 0;
      for (const RankTimes& rank : ranks) {
        const bool events = clock == Clock::busy_stream || clock == Clock::idle_stream;
        sum += bytes_per_gpu / (events ? on_clock(rank.all, clock) : time_ns(clock));
      }
      const double mean = sum / static_cast<double>(ranks.size());
      return metric == Metric::bandwidth ? mean : mean / peers;
    }
    case Metric::gemm_time:
    case Metric::comm_time: {
      double slowest = 0;
      for (const RankTimes& rank : ranks) {
        slowest = std::max(slowest, on_clock(metric == Metric::gemm_time ? rank.gemm : rank.comm, clock));
      }
      return slowest;
    }
    case Metric::l2_hit:
      return l2_hit;
    case Metric::llc_hit:
      return llc_hit;
    case Metric::hbm_bytes:
      return hbm_bytes;
    case Metric::speedup:
    case Metric::best_speedup:
    case Metric::time_difference:
      break;
  }
  TRITAX_ASSERT(false, "this metric compares two scenarios");
  return 0;
}

bool runs_back_to_back(const Scenario& scenario, Clock clock) {
  return clock == Clock::busy_stream && scenario.problem.workload->back_to_back;
}

Prediction predict(const Scenario& scenario, const Machine& machine, bool back_to_back) {
  const Schedule schedule = build_scenario(scenario, machine);
  SpanRecorder recorder(schedule);
  SimulationOptions options;
  options.observer = &recorder;
  options.warm = back_to_back;
  const SimulationResult result = simulate(schedule, back_to_back ? sustained(machine) : machine, options);
  Prediction prediction;
  prediction.makespan_ns = result.makespan_ns;
  prediction.kernels_ns = result.kernels_ns;
  const Work work = work_of(scenario.problem);
  prediction.flops = work.flops;
  prediction.bytes_per_gpu = work.bytes_per_gpu;
  prediction.peers = work.peers;
  prediction.l2_hit = l2_hit(result.caches);
  prediction.llc_hit = llc_hit(result.caches);
  prediction.hbm_bytes = hbm_bytes(result.caches);
  prediction.ranks = recorder.times(machine, gemm_call_ns(scenario, machine));
  return prediction;
}

}  // namespace tritax
