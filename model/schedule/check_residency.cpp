// Findings that depend on a machine: ranks, memory, resources of a workgroup, and residency.
//
// Residency, per rank:
//  * all workgroups of a persistent kernel must be resident at once;
//  * kernels that can run at the same time and of which one spins on flags that another one sets (also by way
//  of other
//    ranks) form a group: its persistent kernels must be resident together, and every other kernel of the
//    group needs room for at least one workgroup beside them;
//  * a spinning grid that is launched before the kernel it spins on may take every place; the other must
//  still find one;
//  * in a grid that is larger than what is resident at once, a workgroup may only spin on workgroups that get
//  a place
//    without it ending: the schedule is executed with as many places as there are.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/schedule/findings.hpp"
#include "model/schedule/progress.hpp"
#include "model/schedule/residency.hpp"
#include "model/schedule/sync_graph.hpp"

namespace tritax {

namespace {

using Kind = Finding::Kind;

void check_resources(const Schedule& schedule, const Machine& machine, Findings& findings) {
  const Gpu& gpu = machine.gpu;
  for (std::size_t i = 0; i < schedule.kernels.size(); ++i) {
    const Kernel& kernel = schedule.kernels[i];
    const Resources& resources = kernel.resources;
    const auto refuse = [&](std::string message) {
      findings.add(Kind::resources, describe_kernel(schedule, i), std::move(message));
    };
    const int threads_max = gpu.simds_per_cu * gpu.waves_per_simd * gpu.lanes_per_wave;
    if (waves_of(gpu, resources) * gpu.lanes_per_wave > threads_max) {
      refuse(fmt::format("a workgroup has {} threads; a compute unit of {} holds {}", resources.threads,
                         gpu.name, threads_max));
    }
    if (resources.registers_per_thread > gpu.registers_per_thread_max) {
      refuse(fmt::format("{} registers a thread; {} has at most {}", resources.registers_per_thread, gpu.name,
                         gpu.registers_per_thread_max));
    } else if (static_cast<double>(registers_of(gpu, resources)) > gpu.registers_per_cu) {
      refuse(fmt::format("a workgroup needs {} registers; a compute unit of {} has {}",
                         registers_of(gpu, resources), gpu.name, gpu.registers_per_cu));
    }
    const double lds_bytes = std::min(gpu.lds_bytes_per_workgroup_max, gpu.lds_bytes_per_cu);
    if (resources.lds_bytes > lds_bytes) {
      refuse(fmt::format("a workgroup needs {} bytes of LDS; {} gives it at most {}", resources.lds_bytes,
                         gpu.name, lds_bytes));
    }
    if (kernel.cu_end > gpu.cu_count()) {
      refuse(fmt::format("runs on compute units [{}, {}); {} has {}", kernel.cu_begin, kernel.cu_end,
                         gpu.name, gpu.cu_count()));
    }
  }
}

void check_memory(const Schedule& schedule, const Gpu& gpu, Findings& findings) {
  double bytes = 0;
  for (const Buffer& buffer : schedule.buffers) {
    bytes += bytes_of(buffer, {0, 0, buffer.rows, buffer.cols});
  }
  for (const FlagArray& flags : schedule.flags) {
    bytes += 4.0 * flags.count;
  }
  if (gpu.hbm_bytes > 0 && bytes > gpu.hbm_bytes) {  // 0: a machine that does not say
    findings.add(Kind::resources, "schedule",
                 fmt::format("its buffers and flags take {:.4g} GB on every GPU; {} has {:.4g} GB",
                             bytes / 1e9, gpu.name, gpu.hbm_bytes / 1e9));
  }
}

class ResidencyChecker {
 public:
  ResidencyChecker(const SyncGraph& graph, const Machine& machine, Findings& findings)
      : graph_(graph), machine_(machine), findings_(findings) {}

  void check() {
    check_persistent();
    if (findings_.empty()) {
      check_grids();
    }
    if (findings_.empty()) {
      check_groups();
    }
  }

 private:
  const Kernel& kernel_of(std::uint32_t run) const { return graph_.kernel_of(graph_.runs()[run]); }
  std::size_t size_of(std::uint32_t run) const { return kernel_of(run).workgroups.size(); }
  bool persistent(std::uint32_t run) const { return kernel_of(run).placement == Placement::persistent; }
  std::string name_of(std::uint32_t run) const {
    return describe_kernel(graph_.schedule(), graph_.runs()[run].kernel);
  }

  void check_persistent() {
    std::set<std::uint32_t> seen;
    for (std::uint32_t run = 0; run < graph_.runs().size(); ++run) {
      places_.push_back(ResidentWorkgroups(machine_.gpu).add(kernel_of(run), size_of(run)));
      if (persistent(run) && places_[run] < size_of(run) && seen.insert(graph_.runs()[run].kernel).second) {
        findings_.add(
            Kind::resources, name_of(run),
            fmt::format("is persistent with {} workgroups, but only {} of them are resident at once on {}; "
                        "launch fewer or let each take less",
                        size_of(run), places_[run], machine_.gpu.name));
      }
    }
  }

  // Waits inside a grid on workgroups that are dispatched later.
  void check_grids() {
    const std::vector<char> reached = reached_vertices(graph_, places_);
    for (std::uint32_t i = 0; i < graph_.workgroups().size(); ++i) {
      const WorkgroupRun& workgroup = graph_.workgroups()[i];
      if (places_[workgroup.run] >= size_of(workgroup.run) ||
          reached[graph_.runs()[workgroup.run].end] != 0) {
        continue;
      }
      const std::uint32_t blocked = first_blocked_wait(workgroup, reached);
      if (blocked != 0) {
        const Op& op = graph_.op_of(blocked);
        findings_.add(
            Kind::resources, graph_.describe_vertex(blocked),
            fmt::format("waits for {} >= {}, but only {} of the {} workgroups of its kernel are resident at "
                        "once on {} and those that would signal are dispatched later; make the grid smaller "
                        "or signal from workgroups that come first",
                        describe_flag(graph_.schedule(), op.flag, op.index, op.rank), op.value,
                        places_[workgroup.run], size_of(workgroup.run), machine_.gpu.name));
        return;  // the others wait behind this one
      }
    }
  }

  // The wait at which a workgroup that has begun stops; 0 (no wait: vertex 0 is the start of a kernel) if
  // there is none.
  std::uint32_t first_blocked_wait(const WorkgroupRun& workgroup, const std::vector<char>& reached) const {
    const std::uint32_t end = workgroup.first_vertex + workgroup.vertex_count;
    for (std::uint32_t vertex = workgroup.first_vertex + 1; vertex < end; ++vertex) {
      if (reached[vertex] == 0) {
        return reached[vertex - 1] != 0 ? vertex : 0;
      }
    }
    return 0;
  }

  void check_groups() {
    const auto runs = static_cast<std::uint32_t>(graph_.runs().size());
    waits_.assign(runs, {});
    for (const WorkgroupRun& workgroup : graph_.workgroups()) {
      for (std::uint32_t i = 1; i < workgroup.vertex_count; ++i) {
        if (graph_.vertices()[workgroup.first_vertex + i].kind == SyncVertex::Kind::wait) {
          waits_[workgroup.run].push_back(workgroup.first_vertex + i);
        }
      }
    }
    for (std::uint32_t run = 0; run < runs && findings_.empty(); ++run) {
      if (!waits_[run].empty()) {
        check_group(run);
      }
    }
  }

  // Runs of the same rank on whose signals `run` spins and that can run at the same time.
  std::vector<std::uint32_t> targets_of(std::uint32_t run, const std::vector<char>& past_of_start) const {
    const std::vector<char> past = past_of(graph_, waits_[run]);
    std::set<std::uint32_t> targets;
    for (std::uint32_t vertex = 0; vertex < past.size(); ++vertex) {
      if (past[vertex] == 0 || graph_.vertices()[vertex].kind != SyncVertex::Kind::signal) {
        continue;
      }
      const std::uint32_t other = graph_.workgroups()[graph_.vertices()[vertex].owner].run;
      const bool same_rank = graph_.runs()[other].rank == graph_.runs()[run].rank;
      if (other != run && same_rank && past_of_start[graph_.runs()[other].end] == 0) {
        targets.insert(other);
      }
    }
    return {targets.begin(), targets.end()};
  }

  // True if whatever the start of `other` needs, the start of `run` needs as well, and it was launched first.
  bool dispatched_first(std::uint32_t other, std::uint32_t run,
                        const std::vector<char>& past_of_start) const {
    const auto [begin, end] = boost::in_edges(graph_.runs()[other].start, graph_.graph());
    return other < run && std::all_of(begin, end, [&](const auto& edge) {
             return past_of_start[boost::source(edge, graph_.graph())] != 0;
           });
  }

  void check_group(std::uint32_t run) {
    const std::vector<char> past_of_start = past_of(graph_, {graph_.runs()[run].start});
    std::vector<std::uint32_t> group = targets_of(run, past_of_start);
    if (group.empty()) {
      return;
    }
    const std::vector<std::uint32_t> targets = group;
    group.push_back(run);
    std::sort(group.begin(), group.end());
    ResidentWorkgroups resident(machine_.gpu);
    std::string held;
    for (const std::uint32_t member : group) {
      if (persistent(member) && !place_all(resident, member, held)) {
        return;
      }
    }
    for (const std::uint32_t member : group) {
      if (!persistent(member) && !place_one(resident, member, held)) {
        return;
      }
    }
    if (!persistent(run)) {
      ResidentWorkgroups taken = resident;
      taken.add(kernel_of(run), size_of(run));
      for (const std::uint32_t target : targets) {
        if (!persistent(target) && !dispatched_first(target, run, past_of_start) &&
            !place_one(taken, target, name_of(run))) {
          return;
        }
      }
    }
  }

  bool place_all(ResidentWorkgroups& resident, std::uint32_t run, std::string& held) {
    const std::uint64_t placed = resident.add(kernel_of(run), size_of(run));
    if (placed < size_of(run)) {
      findings_.add(
          Kind::resources, name_of(run),
          fmt::format("has {} workgroups that must be resident together with {}, because they spin on each "
                      "other; on {} only {} find a place: launch fewer workgroups or let each take less",
                      size_of(run), held, machine_.gpu.name, placed));
      return false;
    }
    held += (held.empty() ? "" : ", ") + fmt::format("{} workgroups of {}", size_of(run), name_of(run));
    return true;
  }

  bool place_one(ResidentWorkgroups resident, std::uint32_t run, const std::string& held) {
    if (resident.add(kernel_of(run), std::min<std::uint64_t>(
                                         size_of(run), static_cast<std::uint64_t>(machine_.gpu.xcds))) > 0) {
      return true;
    }
    findings_.add(
        Kind::resources, name_of(run),
        fmt::format("may never become resident on {}: {} can take every place and then spin on its flags; "
                    "launch fewer of those, or launch this kernel first",
                    machine_.gpu.name, held));
    return false;
  }

  const SyncGraph& graph_;
  const Machine& machine_;
  Findings& findings_;
  std::vector<std::uint64_t> places_;              // by run: resident workgroups when it is alone
  std::vector<std::vector<std::uint32_t>> waits_;  // by run
};

}  // namespace

std::vector<Finding> check_schedule_on(const Schedule& schedule, const Machine& machine, std::size_t limit) {
  Findings findings(limit);
  check_ranges(schedule, findings);
  if (!findings.empty()) {
    return findings.take();
  }
  if (schedule.ranks > machine.gpu_count()) {
    findings.add(Kind::resources, "schedule",
                 fmt::format("has {} ranks; machine '{}' has {} GPUs", schedule.ranks, machine.name,
                             machine.gpu_count()));
  }
  check_memory(schedule, machine.gpu, findings);
  check_resources(schedule, machine, findings);
  if (findings.empty()) {
    const SyncGraph graph(schedule);
    check_progress(graph, findings);
    if (findings.empty()) {
      ResidencyChecker(graph, machine, findings).check();
    }
  }
  return findings.take();
}

}  // namespace tritax
