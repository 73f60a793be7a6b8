#include "model/schedule/relax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "model/core/error.hpp"
#include "model/schedule/accesses.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/find_phases.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/harness.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

bool waits(const Schedule& schedule, const Kernel& kernel) {
  for (std::size_t p = 0; p < program_count(kernel); ++p) {
    const auto first = schedule.ops.begin() + program_of(kernel, p).first_op;
    const bool any = std::any_of(first, first + program_of(kernel, p).op_count,
                                 [](const Op& op) { return op.kind == OpKind::wait; });
    if (any) return true;
  }
  return false;
}

// The schedule without boundaries, before flags replace their dependences. Kernels share the operations of
// `schedule`; runs and workgroup runs have the same numbers as in its SyncGraph.
Schedule without_boundaries(const Schedule& schedule) {
  Schedule relaxed = schedule;
  relaxed.kernels.clear();
  relaxed.graphs.clear();
  std::map<std::uint32_t, int> launches;
  for (const std::uint32_t launched : kernels_by_launch(schedule)) {
    Kernel& kernel = relaxed.kernels.emplace_back(schedule.kernels[launched]);
    if (!waits(schedule, kernel)) {
      kernel.placement = Placement::dispatch;  // it does not need all its workgroups at once
    }
    if (const int launch = ++launches[launched]; launch > 1) {
      kernel.name += fmt::format(" (launch {})", launch);
    }
  }
  const std::vector<char> harness = harness_barriers(schedule);
  std::int32_t next_run = 0;
  for (std::vector<HostOp>& program : relaxed.host) {
    const std::vector<HostOp> boundaries = std::exchange(program, {});
    std::int32_t stream = 0;
    bool synchronised = false;
    std::size_t barrier = 0;
    std::size_t barriers_after = 0;
    for (const HostOp& op : boundaries) {
      if (op.kind == HostOpKind::launch) {
        program.push_back({HostOpKind::launch, next_run++, stream++, -1});
        synchronised = false;
      } else if (op.kind == HostOpKind::graph_launch) {
        Graph& nodes = relaxed.graphs.emplace_back();
        for (std::size_t i = 0; i < schedule.graphs[static_cast<std::size_t>(op.graph)].size(); ++i) {
          nodes.push_back({next_run++, stream++});
        }
        program.push_back(
            {HostOpKind::graph_launch, -1, 0, static_cast<std::int32_t>(relaxed.graphs.size()) - 1});
        synchronised = false;
      } else if (op.kind == HostOpKind::host_work && op.label != kFrameworkSync) {
        program.push_back(op);  // the host does the same work, without the waits around a synchronised step
      } else if (op.kind == HostOpKind::barrier && harness[barrier++] != 0) {
        // A barrier before all work keeps its place; a barrier after all work follows the synchronisation.
        if (stream == 0 && !synchronised) {
          program.push_back(op);
        } else {
          ++barriers_after;
        }
      } else if (op.kind != HostOpKind::event_record && op.kind != HostOpKind::event_wait) {
        synchronised = true;
      }
    }
    if (synchronised) {
      program.push_back({HostOpKind::device_synchronize, -1, 0, -1});
    }
    for (; barriers_after > 0; --barriers_after) program.push_back({HostOpKind::barrier, -1, 0, -1});
  }
  return relaxed;
}

// Pairs of different workgroups that touch the same data: one access, and all writes of a group.
std::vector<SideQuery> accesses_that_meet(const SyncGraph& graph, const Accesses& accesses) {
  std::vector<SideQuery> meet;
  const auto add = [&](OpPoint point, const WriteGroup& writes) {
    if (point.workgroup_run != writes.first.at.workgroup_run) {
      meet.push_back({point, writes.first.at.workgroup_run, accesses.ops_of(writes)});
    }
  };
  for (const Conflict& conflict : accesses.read_write) {
    add(accesses.reads[conflict.first].at, accesses.writes[conflict.second]);
  }
  for (const Conflict& conflict : find_write_conflicts(graph, accesses)) {
    const WriteGroup& first = accesses.writes[conflict.first];
    for (const std::uint32_t op : accesses.ops_of(first)) {
      add({first.first.at.workgroup_run, op}, accesses.writes[conflict.second]);
    }
  }
  return meet;
}

// Pairs of operations of different workgroups that touch the same data and are ordered in `graph` but not in
// `relaxed`. For the writes of a workgroup to one place, only the last write before an operation and the
// first write after it: program order implies the others. Pairs without order have no direction to keep.
std::vector<OrderQuery> lost_dependences(const SyncGraph& graph, const SyncGraph& relaxed) {
  const Accesses accesses = find_accesses(graph);
  const std::vector<SideQuery> meet = accesses_that_meet(graph, accesses);
  const std::vector<Sides> sides = sides_of(graph, meet);
  std::vector<OrderQuery> dependences;
  for (std::size_t i = 0; i < meet.size(); ++i) {
    const auto& [point, workgroup_run, ops] = meet[i];
    if (sides[i].before > 0) {
      dependences.push_back({{workgroup_run, ops[sides[i].before - 1]}, point});
    }
    if (sides[i].after < ops.size()) {
      dependences.push_back({point, {workgroup_run, ops[sides[i].after]}});
    }
  }
  const std::vector<char> kept = are_ordered(relaxed, dependences);
  std::size_t lost = 0;
  for (std::size_t i = 0; i < dependences.size(); ++i) {
    if (kept[i] == 0) {
      dependences[lost++] = dependences[i];
    }
  }
  dependences.resize(lost);
  return dependences;
}

// Places for the flag operations of a workgroup. A block after a claim may be skipped, so signals and waits
// go outside the block: then every workgroup that could have run the block has signalled. They go outside a
// group too, whose operations stay next to each other.
std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks_of(const Schedule& schedule,
                                                               const Workgroup& workgroup) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> block(workgroup.op_count);  // first and last operation
  std::uint32_t first = 0;
  std::uint64_t last = 0;
  bool open = false;
  for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
    const Op& op = schedule.ops[workgroup.first_op + i];
    open = open && i <= last;
    if (!open && op.kind == OpKind::claim) {
      open = true;
      first = i;
      last = std::uint64_t{i} + static_cast<std::uint64_t>(op.rect.rows);
    }
    block[i] = open ? std::pair(first, static_cast<std::uint32_t>(last)) : std::pair(i, i);
  }
  for (std::uint32_t i = 1; i < workgroup.op_count; ++i) {
    if (schedule.ops[workgroup.first_op + i].with_previous) block[i].first = block[i - 1].first;
  }
  for (std::uint32_t i = workgroup.op_count; i-- > 1;) {
    if (schedule.ops[workgroup.first_op + i].with_previous) block[i - 1].second = block[i].second;
  }
  return block;
}

// The flag operations to add: by workgroup run and operation.
struct Additions {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Op>> before;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Op>> after;
  std::int32_t flags = 0;
};

class DependencePlanner {
 public:
  DependencePlanner(const SyncGraph& relaxed, std::int16_t flag_array)
      : relaxed_(relaxed), flag_array_(flag_array) {}

  Additions plan(std::vector<OrderQuery> dependences) {
    for (OrderQuery& dependence : dependences) {
      dependence.before.op = block(dependence.before).second;
      dependence.after.op = block(dependence.after).first;
    }
    // Sorted by reader in program order; of several writes of one workgroup before the same read the last
    // write comes first, so that it covers the others.
    std::sort(dependences.begin(), dependences.end(), [](const OrderQuery& a, const OrderQuery& b) {
      return std::tuple(a.after.workgroup_run, a.after.op, a.before.workgroup_run, b.before.op) <
             std::tuple(b.after.workgroup_run, b.after.op, b.before.workgroup_run, a.before.op);
    });
    std::uint32_t reader = std::numeric_limits<std::uint32_t>::max();
    std::map<std::uint32_t, std::uint32_t>
        known;  // workgroup run → last operation that the reader has waited for
    for (const auto& [before, after] : dependences) {
      if (after.workgroup_run != reader) {
        reader = after.workgroup_run;
        known.clear();
      }
      const auto [entry, fresh] = known.emplace(before.workgroup_run, before.op);
      if (!fresh && entry->second >= before.op) {
        continue;
      }
      entry->second = before.op;
      add(before, after);
    }
    return std::move(additions_);
  }

 private:
  std::pair<std::uint32_t, std::uint32_t> block(OpPoint point) {
    auto entry = blocks_.find(point.workgroup_run);
    if (entry == blocks_.end()) {
      const WorkgroupRun& workgroup = relaxed_.workgroups()[point.workgroup_run];
      const Kernel& kernel = relaxed_.kernel_of(relaxed_.runs()[workgroup.run]);
      entry = blocks_
                  .emplace(point.workgroup_run,
                           blocks_of(relaxed_.schedule(), program_of(kernel, workgroup.workgroup)))
                  .first;
    }
    return entry->second[point.op];
  }

  std::int32_t rank_of(OpPoint point) const {
    return relaxed_.runs()[relaxed_.workgroups()[point.workgroup_run].run].rank;
  }

  void add(OpPoint before, OpPoint after) {
    const std::int32_t reader_rank = rank_of(after);
    const Scope scope = rank_of(before) == reader_rank ? Scope::gpu : Scope::system;
    Op op;
    op.flag = flag_array_;
    op.rank = static_cast<std::int16_t>(reader_rank);
    op.scope = scope;
    op.value = 1;
    const auto key = std::tuple(before.workgroup_run, before.op, reader_rank);
    const auto [flag, fresh] = flag_of_.emplace(key, additions_.flags);
    op.index = flag->second;
    if (fresh) {
      ++additions_.flags;
      op.kind = OpKind::signal;
      additions_.after[{before.workgroup_run, before.op}].push_back(op);
    }
    op.kind = OpKind::wait;
    additions_.before[{after.workgroup_run, after.op}].push_back(op);
  }

  const SyncGraph& relaxed_;
  std::int16_t flag_array_;
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::uint32_t>>> blocks_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>, std::int32_t> flag_of_;
  Additions additions_;
};

// Rewrites the operations, kernel by kernel, with the additions inserted.
void insert(Schedule& relaxed, const Additions& additions) {
  std::vector<Op> ops;
  ops.reserve(relaxed.ops.size() + additions.before.size() + additions.after.size());
  const auto append = [&ops](const auto& list, std::uint32_t workgroup_run, std::uint32_t op) {
    const auto entry = list.find({workgroup_run, op});
    if (entry != list.end()) {
      ops.insert(ops.end(), entry->second.begin(), entry->second.end());
    }
  };
  std::uint32_t workgroup_run = 0;
  for (Kernel& kernel : relaxed.kernels) {
    for (auto* programs : {&kernel.workgroups, &kernel.items}) {
      for (Workgroup& program : *programs) {
        const auto first = static_cast<std::uint32_t>(ops.size());
        for (std::uint32_t i = 0; i < program.op_count; ++i) {
          append(additions.before, workgroup_run, i);
          ops.push_back(relaxed.ops[program.first_op + i]);
          append(additions.after, workgroup_run, i);
        }
        program = {first, static_cast<std::uint32_t>(ops.size()) - first};
        ++workgroup_run;
      }
    }
  }
  relaxed.ops = std::move(ops);
}

}  // namespace

std::vector<std::uint32_t> kernels_by_launch(const Schedule& schedule) {
  std::vector<std::uint32_t> kernels;
  for (const std::vector<HostOp>& program : schedule.host) {
    for_each_launch(schedule, program, [&](const GraphNode& node) {
      kernels.push_back(static_cast<std::uint32_t>(node.kernel));
    });
  }
  return kernels;
}

bool keeps_boundaries(const Schedule& schedule) {
  return !schedule.transfers.empty() || sets_flags(schedule);
}

Schedule with_tile_dependences(const Schedule& schedule) {
  Findings findings(1);
  check_ranges(schedule, findings);
  require_sound(findings.take(), "schedule '" + schedule.name + "'");
  TRITAX_ASSERT(schedule.flags.size() <= std::numeric_limits<std::int16_t>::max(),
                "flag arrays have 16 bit numbers");

  if (keeps_boundaries(schedule)) return schedule;
  const SyncGraph graph = sync_graph_of(schedule);
  Schedule relaxed = without_boundaries(schedule);
  Additions additions;
  {
    const SyncGraph relaxed_graph = sync_graph_of(relaxed);
    const auto flag_array = static_cast<std::int16_t>(schedule.flags.size());
    additions = DependencePlanner(relaxed_graph, flag_array).plan(lost_dependences(graph, relaxed_graph));
  }
  if (additions.flags > 0) {
    relaxed.flags.push_back({std::string(kTileDependences), additions.flags});
  }
  insert(relaxed, additions);
  return relaxed;
}

}  // namespace tritax
