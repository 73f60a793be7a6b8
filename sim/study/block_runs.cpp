#include "sim/study/block_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "model/core/error.hpp"
#include "model/cost/host_work.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/schedule/harness.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/workload/launching.hpp"
#include "sim/study/evaluator.hpp"
#include "sim/study/sparsity_roofline.hpp"

namespace tritax {

namespace {

// The same GPUs with a host that takes no time; see the header.
Machine without_host_costs(Machine machine) {
  machine.host = HostCosts{.barrier_ns = machine.host.barrier_ns};
  machine.library.collective_call_ns = 0;
  machine.library.framework_sync_ns = 0;
  machine.library.framework_gather_ns = 0;
  machine.library.kernel_gap_ns = 0;
  machine.interpreter.kernel_gap_ns = machine.interpreter.graph_node_gap_ns = -1;
  return machine;
}

// Costs of one rank's host program.
struct HostShare {
  std::map<std::int32_t, std::pair<double, double>> gaps_ns;  // by stream: without and with a graph
  double calls_ns = 0;
  std::int64_t kernels = 0;
  bool waits = false;  // and then gets work again
};

class HostCount {
 public:
  HostCount(const Schedule& schedule, const Machine& machine)
      : schedule_(schedule), machine_(machine), costs_(machine), harness_(harness_barriers(schedule)) {}

  HostShare of(std::size_t rank) const {
    HostShare share;
    std::size_t barrier = 0;
    bool waited = false;
    for (const HostOp& op : schedule_.host[rank]) {
      switch (op.kind) {
        case HostOpKind::stream_synchronize:
        case HostOpKind::device_synchronize:
          waited = share.kernels > 0;
          break;
        case HostOpKind::barrier:
          if (barrier >= harness_.size() || harness_[barrier] == 0) share.waits = true;
          ++barrier;
          break;
        default:
          share.waits = share.waits || waited;
          add_work(op, share);
      }
    }
    return share;
  }

 private:
  void add_work(const HostOp& op, HostShare& share) const {
    const HostCosts& host = machine_.host;
    switch (op.kind) {
      case HostOpKind::launch:
        share.calls_ns += host.launch_call_ns;
        break;
      case HostOpKind::graph_launch:
        share.calls_ns += host.graph_launch_call_ns;
        break;
      case HostOpKind::host_work:
        share.calls_ns += host_work_ns(machine_.library, op);
        break;
      default:
        share.calls_ns += host.launch_call_ns;
    }
    const bool graph = op.kind == HostOpKind::graph_launch;
    for_each_launch(schedule_, op, [&](const GraphNode& node) {
      const KernelCosts& costs = costs_.of(schedule_.kernels[static_cast<std::size_t>(node.kernel)]);
      auto& [alone, in_graph] = share.gaps_ns[node.stream];
      alone += graph ? graph_node_gap_ns(host, costs) : kernel_gap_ns(host, costs);
      in_graph += graph_node_gap_ns(host, costs);
      ++share.kernels;
    });
  }

  const Schedule& schedule_;
  const Machine& machine_;
  const CostTable costs_;
  const std::vector<char> harness_;
};

void add_host(BlockRun& run, const Schedule& schedule, const Machine& machine) {
  const HostCount count(schedule, machine);
  std::int64_t kernels = 1;
  for (std::size_t rank = 0; rank < schedule.host.size(); ++rank) {
    const HostShare share = count.of(rank);
    run.calls_ns = std::max(run.calls_ns, share.calls_ns);
    run.holds_host = run.holds_host || share.waits;
    kernels = std::max(kernels, share.kernels);
    for (const auto& [stream, gaps] : share.gaps_ns) {
      run.gaps_ns = std::max(run.gaps_ns, gaps.first);
      run.graph_gaps_ns = std::max(run.graph_gaps_ns, gaps.second);
    }
  }
  run.last_share = 1 / static_cast<double>(kernels);
}

}  // namespace

const BlockRun& BlockRuns::of(std::string_view pattern) const {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const BlockRun& run) { return run.pattern->name == pattern; });
  if (found != runs.end()) return *found;
  throw UserError(fmt::format("{} cannot be predicted: {}", pattern, fmt::join(left_out, "; ")));
}

BlockRuns runs_of(const Problem& problem, const Machine& machine, const BlockOptions& options) {
  const Values knobs(problem.workload->knobs);
  const bool graph = options.in_graph && knobs.has(kEngineKnob);
  const Choices choices =
      choices_of(problem, machine, in_mode(knobs, graph ? LaunchMode::graph : LaunchMode::stream, machine));
  Evaluator evaluator(choices, {options.seed, options.threads, options.stop, {}, {}});
  const Selector& selector = options.selector == nullptr ? selectors().front() : *options.selector;
  selector.select(choices, evaluator);
  BlockRuns found;
  std::vector<std::size_t> patterns;
  for (std::size_t p = 0; p < choices.patterns.size(); ++p) {
    if (evaluator.best(p)) {
      patterns.push_back(p);
    } else {
      found.left_out.push_back(
          fmt::format("{}: {}", choices.patterns[p].pattern->name, evaluator.refusal(p)));
    }
  }
  found.runs.resize(patterns.size());
  const Machine quiet = without_host_costs(machine);
  evaluator.parallel(patterns.size(), [&](std::size_t i) {
    if (evaluator.stopped()) return;
    BlockRun& run = found.runs[i];
    run.pattern = choices.patterns[patterns[i]].pattern;
    run.knobs = evaluator.best(patterns[i])->knobs;
    run.searched = selector.searches();
    run.doubted = doubt_of(problem, run.pattern->name, machine) != nullptr;
    Schedule schedule = evaluator.build(patterns[i], run.knobs);
    add_host(run, schedule, machine);
    // Host work between launches has its duration in the schedule; it counts among the calls.
    for (std::vector<HostOp>& program : schedule.host) {
      for (HostOp& op : program) {
        if (op.kind == HostOpKind::host_work) op.duration_ns = 0;
      }
    }
    SimulationOptions simulation;
    simulation.seed = options.seed;
    simulation.stop = options.stop;
    run.account = simulate(schedule, quiet, simulation).account;
    run.account.harness_ns = 0;
    const auto call_ns = problem.workload->call_ns;
    if (call_ns != nullptr) run.calls_ns += call_ns(*run.pattern, problem, machine);
  });
  found.trust = trust_of(problem, machine);
  return found;
}

BlockRun stream_run(const Machine& machine, DType dtype, int kernels, double bytes, double flops) {
  BlockRun run;
  const double memory_ns = bytes / machine.gpu.hbm_gb_per_s;
  const double compute_ns = flops > 0 ? flops / peaks_of(machine, dtype).gflop_per_s : 0;
  run.account.memory_ns = kernels * machine.gpu.hbm_latency_ns + memory_ns;
  if (compute_ns > memory_ns) {
    run.account.memory_ns -= memory_ns;
    run.account.compute_ns = compute_ns;
  }
  run.gaps_ns = kernels * machine.host.kernel_gap_ns;
  run.graph_gaps_ns = kernels * machine.host.graph_node_gap_ns;
  run.calls_ns = kernels * machine.host.launch_call_ns;
  run.last_share = 1.0 / kernels;
  return run;
}

}  // namespace tritax
