// The least remaining time of a run.
//
// Operations of a workgroup follow each other, kernels of a stream follow each other, and hosts wait for them
// and for one another. None of these can be faster than alone: matmuls at the present clock, which only falls
// during a run (update_clock), data moves at the boost clock; sharing a compute unit, a link or a memory only
// makes them slower.
#include "sim/engine_outlook.hpp"

#include <algorithm>

#include "model/schedule/op_traits.hpp"

namespace tritax::engine {

// Shortest time of an operation that moves data: alone on its compute unit, from the nearest memory, at the
// boost clock, and with its own arbitration weight in case the link is full.
double Outlook::shortest_move_ns(const Kernel& kernel, const WorkgroupState& wg,
                                 std::uint32_t op_index) const {
  const Op& op = run_.schedule.ops[op_index];
  if (!moves_data(op.kind)) return 0;
  if (op.by_engine) return tile_bytes(run_.schedule, op) / run_.machine.copy_engine.gb_per_s;
  const DataMove move = move_of(op, kernel.rank);
  const MoveConditions best{.gb_per_s = run_.moves.workgroup_gb_per_s(wg.kernel, move.kind),
                            .read_ns = least_read_ns_,
                            .lone = run_.is_lone_copy(wg, op_index, move),
                            .probes = run_.is_next_probe(wg, op_index)};
  const double rate = run_.moves.gb_per_s_alone(kernel, op, move, best);
  if (rate <= 0) return 0;
  // The weight of a store in its port is unknown before the workgroup has a compute unit.
  const bool of_port = parts_.lock_step.coalesces(wg) && op.kind == OpKind::store && kernel.tile.m > 0;
  const double weight = of_port ? ServiceWeights::highest(run_.machine.fabric.arbitration_spread)
                                : parts_.luck.service_weight(wg, op_index);
  return tile_bytes(run_.schedule, op) / rate / std::max(1.0, weight);
}

// Fills `rest_ns_` and `tail_ns_`. Operations behind a wait for a flag that only one signal raises follow
// that signal: the first pass finds the waits, the second adds them to their signals.
void Outlook::index() {
  rest_ns_.assign(run_.schedule.ops.size(), 0.0);
  least_read_ns_ = std::min(run_.machine.gpu.l2_latency_ns, run_.machine.gpu.hbm_latency_ns);
  if (run_.machine.gpu.llc_bytes > 0)
    least_read_ns_ = std::min(least_read_ns_, run_.machine.gpu.llc_latency_ns);
  if (run_.options.counterfactual.intermediates_on_chip) least_read_ns_ = 0;
  const auto for_each_workgroup = [&](std::uint32_t k, const auto& visit) {
    for (std::uint32_t w = 0; w < run_.schedule.kernels[k].workgroups.size(); ++w) visit(run_.at_start(k, w));
    for (const Item& item : run_.schedule.kernels[k].items) visit(at_item(k, item));
  };
  std::vector<FlagOutlook> flags(parts_.flags.count());
  std::vector<std::uint8_t> raises(run_.schedule.kernels.size(), 0);
  const auto find_waits = [&](const WorkgroupState& state) {
    const Kernel& kernel = run_.schedule.kernels[state.kernel];
    index_rest(kernel, state, nullptr);
    bool sure = true;  // operations behind a claim may be skipped
    for (std::uint32_t o = state.pc; o < state.end; ++o) {
      const Op& op = run_.schedule.ops[o];
      if (op.kind == OpKind::signal) {
        flags[parts_.flags.flag_of(op.rank, op)].signals +=
            sets_flag(op) ? 2 : 1;  // no waiter waits for one of several signals alone
        raises[state.kernel] = 1;
      } else if (op.kind == OpKind::claim) {
        sure = false;
      } else if (op.kind == OpKind::wait && sure && op.value > 0 && o + 1 < state.end) {
        FlagOutlook& flag = flags[parts_.flags.flag_of(kernel.rank, op)];
        std::uint32_t next = o + 1;  // behind the group of the wait
        while (next < state.end && run_.schedule.ops[next].with_previous) ++next;
        const double rest_ns = next < state.end ? rest_ns_[next] : 0;
        if (rest_ns > flag.rest_ns) flag = {rest_ns, state.kernel, flag.signals};
      }
    }
  };
  for (std::uint32_t k = 0; k < run_.kernels.size(); ++k) for_each_workgroup(k, find_waits);
  index_tails();
  for (std::uint32_t k = 0; k < run_.kernels.size(); ++k) {
    if (raises[k] == 0) continue;
    for_each_workgroup(
        k, [&](const WorkgroupState& state) { index_rest(run_.schedule.kernels[k], state, &flags); });
  }
}

// Fills `rest_ns_` for one workgroup: from the start of each operation to the end of the workgroup, with
// matmuls at the clock under full load; with `flags` also to the end of the workgroups that wait for it, if
// that is later than the end of its own kernel. Operations behind a claim may be skipped and count nothing;
// the item of a claim is unknown before the claim, but each item takes its own time, from any start.
void Outlook::index_rest(const Kernel& kernel, const WorkgroupState& state,
                         const std::vector<FlagOutlook>* flags) {
  const bool matmuls_drain = run_.machine.gpu.loads_wait_for_stores && !state.has_sender;
  struct Rest {
    double ns = 0;        // from the next operation on
    double of_drain = 0;  // from the next operation on that waits for the store in flight
  };
  Rest rest, behind, most;  // … from the operation behind a group, and the most of the operations of a group
  for (std::uint32_t o = state.end; o-- > state.pc;) {
    const Op& op = run_.schedule.ops[o];
    const bool grouped = o + 1 < state.end && run_.schedule.ops[o + 1].with_previous;
    if (grouped) {
      rest = behind;
    } else {
      behind = rest;
      most = {};
    }
    const bool sent = state.has_sender && is_sent(op);
    if (op.kind == OpKind::claim) {
      rest = {};
    } else if (multiplies(op.kind)) {
      const MatmulCost& cost = run_.shapes[run_.inputs_of_op[o].shape].cost;
      // A matmul in lock step with others has mostly their random share.
      const double luck = attends(op.kind) ? 1 + run_.machine.gpu.attend_spread
                          : parts_.lock_step.coalesces(state)
                              ? most_luck(run_.machine.gpu, run_.costs.of(kernel))
                              : parts_.luck.spread_of(state, o);
      rest.ns += (cost.compute_ns + cost.prologue_ns) / luck;
      if (matmuls_drain) rest.of_drain = rest.ns;
    } else if (op.kind == OpKind::signal) {
      const double release =
          run_.is_free(op) || !parts_.flags.publishes(state, op) ? 0 : run_.machine.gpu.release_ns;
      if (!sent) rest.ns += release;
      if (flags != nullptr)
        rest.ns =
            std::max(rest.ns, release + rest_of_waiters((*flags)[parts_.flags.flag_of(op.rank, op)], state));
      if (!sent && drains(op)) rest.of_drain = rest.ns;
    } else if (op.kind == OpKind::wait) {
      // A wait for a flag of its own GPU takes at least one poll.
      if (op.scope != Scope::system) rest.ns += parts_.flags.poll_ns(state, op);
    } else if (!sent) {
      const double ns = shortest_move_ns(kernel, state, o);
      rest.ns = is_asynchronous(op.kind) ? std::max(rest.ns, ns + rest.of_drain) : rest.ns + ns;
      if (is_asynchronous(op.kind)) rest.of_drain = rest.ns;
    }  // else: runs beside the next operations; the wait for the staging area does not count
    most = {std::max(most.ns, rest.ns), std::max(most.of_drain, rest.of_drain)};
    if (grouped && !op.with_previous) rest = most;
    rest_ns_[o] = rest.ns;
  }
}

// From the raise of a flag to the end of its waiter, counted as if that were the end of `raiser`.
double Outlook::rest_of_waiters(const FlagOutlook& flag, const WorkgroupState& raiser) const {
  if (flag.signals != 1 || flag.rest_ns == 0) return 0;
  const double later = tail_ns_[flag.kernel] - tail_ns_[raiser.kernel];
  // look_ahead divides by the clock, which must not make a negative difference smaller.
  return flag.rest_ns + (later < 0 ? later * highest_clock_factor_ : later);
}

// Fills `tail_ns_`: from the end of each kernel to the end of its host's program.
void Outlook::index_tails() {
  tail_ns_.assign(run_.schedule.kernels.size(), 0.0);
  highest_clock_factor_ = highest_clock_factor();
  for (std::size_t rank = 0; rank < run_.schedule.host.size(); ++rank) {
    std::vector<double> after(parts_.streams.count(static_cast<std::int32_t>(rank)),
                              0.0);  // least time after what ends in the stream
    double host = 0;                 // least time from the next operation on
    const auto launch = [&](const GraphNode& node, double gap_ns) {
      const auto kernel = static_cast<std::size_t>(node.kernel);
      const auto stream = static_cast<std::size_t>(node.stream);
      tail_ns_[kernel] = after[stream];
      after[stream] = std::max(after[stream], gap_ns + least_kernel_ns(kernel) + tail_ns_[kernel]);
      host =
          std::max(host, parts_.hosts.costs().launch_latency_ns + least_kernel_ns(kernel) + tail_ns_[kernel]);
    };
    const auto& program = run_.schedule.host[rank];
    for (auto op = program.rbegin(); op != program.rend(); ++op) {
      switch (op->kind) {
        case HostOpKind::launch:
          launch({op->kernel, op->stream}, parts_.hosts.gap_before(op->kernel, false));
          host += parts_.hosts.costs().launch_call_ns;
          break;
        case HostOpKind::graph_launch: {
          const Graph& graph = run_.schedule.graphs[static_cast<std::size_t>(op->graph)];
          for (auto node = graph.rbegin(); node != graph.rend(); ++node) {
            launch(*node, parts_.hosts.gap_before(node->kernel, true));
          }
          host += parts_.hosts.costs().graph_launch_call_ns;
          break;
        }
        case HostOpKind::stream_synchronize:
        case HostOpKind::device_synchronize:
          host += parts_.hosts.costs().synchronize_ns;
          for (std::size_t stream = 0; stream < after.size(); ++stream) {
            const bool waited =
                op->kind == HostOpKind::device_synchronize || stream == static_cast<std::size_t>(op->stream);
            if (waited) after[stream] = std::max(after[stream], host);
          }
          break;
        case HostOpKind::barrier:
          host += parts_.hosts.costs().barrier_ns;
          break;
        case HostOpKind::event_record:
        case HostOpKind::event_wait:
        case HostOpKind::copy:
        case HostOpKind::host_work:
          break;  // free in some counterfactuals, and short
      }
    }
  }
}

// A workgroup of which only the kernel and the drawn item are known.
WorkgroupState Outlook::at_item(std::uint32_t k, const Item& item) const {
  WorkgroupState wg = run_.at_start(k, 0);
  wg.pc = item.first_op;
  wg.end = item.first_op + item.op_count;
  return wg;
}

// The least time of a kernel at the highest clock.
double Outlook::least_kernel_ns(std::size_t kernel) const {
  double least = 0;
  for (const Workgroup& workgroup : run_.schedule.kernels[kernel].workgroups) {
    if (workgroup.op_count > 0) least = std::max(least, rest_ns_[workgroup.first_op]);
  }
  for (const Item& item : run_.schedule.kernels[kernel].items) {
    if (item.op_count > 0) least = std::max(least, rest_ns_[item.first_op]);
  }
  return least / highest_clock_factor_;
}

// The highest clock over the load clock, for the matmuls of the run.
double Outlook::highest_clock_factor() const {
  double factor = 1;
  for (const MatmulShape& shape : run_.shapes) {
    factor = std::max(factor,
                      run_.machine.gpu.boost_clock_ghz / run_.machine.gpu.rate(shape.dtype).load_clock_ghz);
  }
  return factor;
}

void Outlook::look_closer(const WorkgroupState& wg, double left_ns) {
  // Later operations may multiply on another GPU, whose clock has fallen less.
  double clock = 1;
  for (const GpuState& gpu : run_.gpus) {
    for (const MatmulShape& shape : run_.shapes) {
      clock = std::max(clock, parts_.clock.most_factor(gpu, shape.dtype));
    }
  }
  run_.totals.gave_up |= rest_ns_[wg.pc] > left_ns * clock;
}

}  // namespace tritax::engine
