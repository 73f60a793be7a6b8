// Checks a schedule on a machine: ranks, memory, resources of a workgroup, and residency.
//
// Residency, per rank:
//  * all workgroups of a persistent kernel, or of a gang, must be resident at once;
//  * persistent kernels that can run at the same time must be resident together if one spins on flags that
//    another sets, also via other ranks;
//  * no workgroup may lose its place to workgroups that spin on it (check_places.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/schedule/find_phases.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/residency.hpp"
#include "model/schedule/wave_schedule.hpp"

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
      refuse(fmt::format("{} registers per thread; {} has at most {}", resources.registers_per_thread,
                         gpu.name, gpu.registers_per_thread_max));
    } else if (static_cast<double>(registers_of(gpu, resources)) > gpu.registers_per_cu) {
      refuse(fmt::format("a workgroup needs {} registers; a compute unit of {} has {}",
                         registers_of(gpu, resources), gpu.name, gpu.registers_per_cu));
    }
    const double lds_bytes = std::min(gpu.lds_bytes_per_workgroup_max, gpu.lds_bytes_per_cu);
    if (resources.lds_bytes > lds_bytes) {
      refuse(fmt::format("a workgroup needs {} bytes of LDS; {} gives it at most {}", resources.lds_bytes,
                         gpu.name, lds_bytes));
    }
    if (std::string fault = fault_of_waves(gpu, kernel.tile); !fault.empty()) refuse(std::move(fault));
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
  if (gpu.hbm_bytes > 0 && bytes > gpu.hbm_bytes) {  // 0: unknown
    findings.add(Kind::resources, "schedule",
                 fmt::format("its buffers and flags take {:.4g} GB on every GPU; {} has {:.4g} GB",
                             bytes / 1e9, gpu.name, gpu.hbm_bytes / 1e9));
  }
}

class ResidencyChecker {
 public:
  ResidencyChecker(const SyncGraph& graph, const Machine& machine, Findings& findings)
      : graph_(graph), machine_(machine), findings_(findings) {}

  LaunchOrders check() {
    check_persistent();
    if (findings_.empty()) {
      check_groups();
    }
    return findings_.empty() ? check_places(graph_, machine_.gpu, findings_) : LaunchOrders::one;
  }

 private:
  const Kernel& kernel_of(std::uint32_t run) const { return graph_.kernel_of(graph_.runs()[run]); }
  std::size_t size_of(std::uint32_t run) const { return kernel_of(run).workgroups.size(); }
  bool persistent(std::uint32_t run) const { return all_resident(kernel_of(run).placement); }
  std::string name_of(std::uint32_t run) const {
    return describe_kernel(graph_.schedule(), graph_.runs()[run].kernel);
  }

  void check_persistent() {
    std::set<std::uint32_t> seen;
    for (std::uint32_t run = 0; run < graph_.runs().size(); ++run) {
      if (!persistent(run) || !seen.insert(graph_.runs()[run].kernel).second) {
        continue;
      }
      const std::uint64_t places = ResidentWorkgroups(machine_.gpu).add(kernel_of(run), size_of(run));
      if (places < size_of(run)) {
        findings_.add(Kind::resources, name_of(run),
                      fmt::format("is {} with {} workgroups, but only {} of them are resident at once on {}; "
                                  "launch fewer or let each take less",
                                  kPlacementNames[static_cast<std::size_t>(kernel_of(run).placement)],
                                  size_of(run), places, machine_.gpu.name));
      }
    }
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

  // Persistent runs of the same rank that can run at the same time and on whose signals `run` spins.
  std::set<std::uint32_t> targets_of(std::uint32_t run) const {
    const std::vector<char> past = past_of(graph_, waits_[run]);
    const std::vector<char> past_of_start = past_of(graph_, {graph_.runs()[run].start});
    std::set<std::uint32_t> targets;
    for (std::uint32_t vertex = 0; vertex < past.size(); ++vertex) {
      if (past[vertex] == 0 || graph_.vertices()[vertex].kind != SyncVertex::Kind::signal) {
        continue;
      }
      const std::uint32_t other = graph_.workgroups()[graph_.vertices()[vertex].owner].run;
      const bool same_rank = graph_.runs()[other].rank == graph_.runs()[run].rank;
      if (other != run && same_rank && persistent(other) && past_of_start[graph_.runs()[other].end] == 0) {
        targets.insert(other);
      }
    }
    return targets;
  }

  void check_group(std::uint32_t run) {
    std::set<std::uint32_t> group = targets_of(run);
    if (persistent(run) && !group.empty()) {
      group.insert(run);
    }
    ResidentWorkgroups resident(machine_.gpu);
    std::string held;
    for (const std::uint32_t member : group) {
      if (!place_all(resident, member, held)) {
        return;
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

  const SyncGraph& graph_;
  const Machine& machine_;
  Findings& findings_;
  std::vector<std::vector<std::uint32_t>> waits_;  // by run
};

}  // namespace

std::vector<Finding> check_schedule_on(const Schedule& schedule, const Machine& machine, std::size_t limit,
                                       LaunchOrders* orders) {
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
    const SyncGraph graph = sync_graph_of(schedule);
    check_progress(graph, findings);
    if (findings.empty()) {
      const LaunchOrders checked = ResidencyChecker(graph, machine, findings).check();
      if (orders != nullptr) *orders = checked;
    }
  }
  return findings.take();
}

}  // namespace tritax
