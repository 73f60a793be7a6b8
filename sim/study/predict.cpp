#include "sim/study/predict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
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

// Records the runs of kernels and copies, and the host calls that launched them.
class SpanRecorder : public SimulationObserver {
 public:
  explicit SpanRecorder(const Schedule& schedule)
      : schedule_(schedule), kernels_(schedule.kernels.size()), hosts_(schedule.host.size()) {}

  void kernel_started(std::uint32_t kernel, double time_ns) override { kernels_[kernel].start_ns = time_ns; }
  void kernel_finished(std::uint32_t kernel, double time_ns) override { kernels_[kernel].end_ns = time_ns; }
  void copy_started(int rank, std::uint32_t host_op, int /*engine*/, double time_ns) override {
    copies_[{rank, host_op}].start_ns = time_ns;
  }
  void copy_finished(int rank, std::uint32_t host_op, double time_ns) override {
    copies_[{rank, host_op}].end_ns = time_ns;
  }

  void host_op_started(int rank, std::uint32_t host_op, double time_ns) override {
    const auto& program = schedule_.host[static_cast<std::size_t>(rank)];
    HostCalls& host = hosts_[static_cast<std::size_t>(rank)];
    const HostOp& op = program[host_op];
    switch (op.kind) {
      case HostOpKind::launch: {
        // The host time of a call before its launch belongs to the kernel that it launches; a collective is
        // one call to its user.
        const bool called = host_op > 0 && (program[host_op - 1].is_work(kCollectiveCall) ||
                                            program[host_op - 1].is_work(kKernelCall));
        note_call(kernels_[static_cast<std::size_t>(op.kernel)], host, called ? host.called_ns : time_ns);
        return;
      }
      case HostOpKind::graph_launch:
        for (const GraphNode& node : schedule_.graphs[static_cast<std::size_t>(op.graph)]) {
          RunTimes& times = kernels_[static_cast<std::size_t>(node.kernel)];
          note_call(times, host, time_ns);
          times.in_graph = true;
        }
        return;
      case HostOpKind::copy:
        note_call(copies_[{rank, host_op}], host, time_ns);
        return;
      case HostOpKind::host_work:
        note_work(op, host_op > 0 && program[host_op - 1].is_work(kFrameworkGather), host, time_ns);
        return;
      case HostOpKind::stream_synchronize:
      case HostOpKind::device_synchronize:
      case HostOpKind::barrier:
        ++host.waits;
        return;
      case HostOpKind::event_record:
      case HostOpKind::event_wait:
        return;
    }
  }

  // `call_ns`: host time of a GEMM call beyond its launch.
  std::vector<RankTimes> times(const Machine& machine, double call_ns) const {
    const CostTable costs(machine);
    std::map<int, std::array<Stretch, 3>> ranks;
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const Kernel& kernel = schedule_.kernels[i];
      auto& stretches = ranks[kernel.rank];
      const bool gemm = kernel.tile.m > 0 || kernel.name == kAddingKernel;
      const KernelCosts& own = costs.of(kernel);
      const double gap_ns =
          kernels_[i].in_graph ? graph_node_gap_ns(machine.host, own) : kernel_gap_ns(machine.host, own);
      for (Stretch* stretch : {&stretches[0], &stretches[gemm ? 1 : 2]}) {
        stretch->add(kernels_[i], gap_ns);
        stretch->kernels.emplace_back(kernels_[i].start_ns, kernels_[i].end_ns);
      }
    }
    for (const auto& [place, copy] : copies_) {
      auto& stretches = ranks[place.first];
      for (Stretch* stretch : {&stretches[0], &stretches[2]}) stretch->add(copy, 0);
    }
    std::vector<RankTimes> times;
    for (const auto& [rank, stretches] : ranks) {
      RankTimes& times_of_rank = times.emplace_back(
          RankTimes{stretches[0].span(true), stretches[1].span(false), stretches[2].span(false)});
      if (stretches[1].runs.empty()) continue;
      times_of_rank.all.idle_stream_ns += call_ns;
      times_of_rank.gemm.idle_stream_ns += call_ns;
    }
    return times;
  }

 private:
  struct RunTimes {
    double call_ns = 0;
    double start_ns = 0;
    double end_ns = 0;
    int waits = 0;  // of its host before the call
    bool in_graph = false;
  };

  struct HostCalls {
    int waits = 0;         // so far, for streams or other hosts
    double called_ns = 0;  // start of the latest call
  };

  struct Stretch {
    struct Run {
      double begin_ns = 0;  // start of the gap before it
      double end_ns = 0;
      int waits = 0;
    };
    std::vector<Run> runs;
    std::vector<std::pair<double, double>> kernels;  // start and end of runs that are no copies
    double first_call_ns = std::numeric_limits<double>::infinity();

    void add(const RunTimes& run, double gap_ns) {
      runs.push_back({run.start_ns - gap_ns, run.end_ns, run.waits});
      first_call_ns = std::min(first_call_ns, run.call_ns);
    }
    // The union of the runs. A stream that the host has waited for is idle until it gets more work, and no
    // earlier work hides that launch; `alone`: nothing else ran meanwhile.
    KernelSpan span(bool alone) const {
      if (runs.empty()) return {};
      std::vector<Run> sorted = runs;
      std::sort(sorted.begin(), sorted.end(), [](const Run& a, const Run& b) {
        return std::tie(a.begin_ns, a.end_ns, a.waits) < std::tie(b.begin_ns, b.end_ns, b.waits);
      });
      double busy_ns = 0;
      double end_ns = sorted.front().begin_ns;
      int waits = sorted.front().waits;
      for (const Run& run : sorted) {
        const double idle_ns = alone && run.waits > waits ? 0 : std::max(0.0, run.begin_ns - end_ns);
        busy_ns += std::max(0.0, run.end_ns - end_ns - idle_ns);
        end_ns = std::max(end_ns, run.end_ns);
        waits = std::max(waits, run.waits);
      }
      return {kernels_ns(), busy_ns, end_ns - first_call_ns};
    }

    double kernels_ns() const {
      std::vector<std::pair<double, double>> sorted = kernels;
      std::sort(sorted.begin(), sorted.end());
      double union_ns = 0;
      double end_ns = 0;
      for (const auto& [start, end] : sorted) {
        union_ns += std::max(0.0, end - std::max(start, end_ns));
        end_ns = std::max(end_ns, end);
      }
      return union_ns;
    }
  };

  static void note_call(RunTimes& times, const HostCalls& host, double call_ns) {
    times.call_ns = call_ns;
    times.waits = host.waits;
  }

  // The call of a collective starts with the framework's preparation.
  static void note_work(const HostOp& op, bool after_gather, HostCalls& host, double time_ns) {
    const bool collective = op.is_work(kCollectiveCall) && !after_gather;
    if (op.is_work(kFrameworkGather) || op.is_work(kKernelCall) || collective) host.called_ns = time_ns;
  }

  const Schedule& schedule_;
  std::vector<RunTimes> kernels_;
  std::vector<HostCalls> hosts_;                              // by rank
  std::map<std::pair<int, std::uint32_t>, RunTimes> copies_;  // by rank and host operation
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
