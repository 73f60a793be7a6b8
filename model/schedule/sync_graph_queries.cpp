// Queries about places of a graph: the operation, its name, and the vertices around it.
#include <fmt/format.h>

#include <algorithm>

#include "model/schedule/check.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/sync_graph.hpp"

namespace tritax {

std::span<const Op> SyncGraph::ops_of(const WorkgroupRun& workgroup) const {
  const Run& run = runs_[workgroup.run];
  if (run.kernel == kNoKernel) return std::span(schedule_.transfers).subspan(run.transfer, 1);
  const Workgroup& range = program_of(kernel_of(run), workgroup.workgroup);
  return std::span(schedule_.ops).subspan(range.first_op, range.op_count);
}

const Op& SyncGraph::op_at(OpPoint point) const { return ops_of(workgroups_[point.workgroup_run])[point.op]; }

const Op& SyncGraph::op_of(std::uint32_t signal_or_wait) const {
  return op_at({vertices_[signal_or_wait].owner, vertices_[signal_or_wait].op});
}

std::string SyncGraph::describe(OpPoint point) const {
  const WorkgroupRun& workgroup = workgroups_[point.workgroup_run];
  const Run& run = runs_[workgroup.run];
  if (run.kernel == kNoKernel)
    return describe_host_op(schedule_, static_cast<std::size_t>(run.rank), run.host_op);
  return describe_op(schedule_, run.kernel, workgroup.workgroup, point.op);
}

std::string SyncGraph::describe_run(std::uint32_t run) const {
  const Run& it = runs_[run];
  if (it.kernel != kNoKernel) return describe_kernel(schedule_, it.kernel);
  return describe_host_op(schedule_, static_cast<std::size_t>(it.rank), it.host_op);
}

std::string SyncGraph::describe_vertex(std::uint32_t vertex) const {
  const SyncVertex& v = vertices_[vertex];
  switch (v.kind) {
    case SyncVertex::Kind::host:
      return describe_host_op(schedule_, v.owner, v.op);
    case SyncVertex::Kind::host_barrier:
      return fmt::format("host barrier {}", v.owner);
    case SyncVertex::Kind::stream_point:
      return fmt::format("{} in its stream", describe_host_op(schedule_, v.owner, v.op));
    case SyncVertex::Kind::run_start:
      return fmt::format("start of {}", describe_run(v.owner));
    case SyncVertex::Kind::run_end:
      return fmt::format("end of {}", describe_run(v.owner));
    case SyncVertex::Kind::workgroup_begin:
      return fmt::format(
          "begin of {} {}", describe_run(workgroups_[v.owner].run),
          describe_program(kernel_of(runs_[workgroups_[v.owner].run]), workgroups_[v.owner].workgroup));
    case SyncVertex::Kind::signal:
    case SyncVertex::Kind::wait:
    case SyncVertex::Kind::queue_reached:
    case SyncVertex::Kind::queue_left:
      return describe({v.owner, v.op});
    case SyncVertex::Kind::event: {
      const FlagCell& cell = cells_[events_[v.owner].cell];
      return fmt::format("{} >= {}", describe_flag(schedule_, cell.flag, cell.index, cell.rank),
                         events_[v.owner].value);
    }
  }
  return "";
}

std::uint32_t SyncGraph::vertex_after(OpPoint point) const {
  const WorkgroupRun& workgroup = workgroups_[point.workgroup_run];
  const auto first = vertices_.begin() + workgroup.first_vertex + 1;
  const auto last = vertices_.begin() + workgroup.first_vertex + workgroup.vertex_count;
  const auto found = std::upper_bound(
      first, last, point.op, [](std::uint32_t op, const SyncVertex& vertex) { return op < vertex.op; });
  return found == last ? runs_[workgroup.run].end : static_cast<std::uint32_t>(found - vertices_.begin());
}

std::uint32_t SyncGraph::vertex_before(OpPoint point) const {
  const WorkgroupRun& workgroup = workgroups_[point.workgroup_run];
  const auto first = vertices_.begin() + workgroup.first_vertex + 1;
  const auto last = vertices_.begin() + workgroup.first_vertex + workgroup.vertex_count;
  const auto found = std::lower_bound(
      first, last, point.op, [](const SyncVertex& vertex, std::uint32_t op) { return vertex.op < op; });
  const auto before = static_cast<std::uint32_t>(found - vertices_.begin()) - 1;
  const std::uint32_t block = block_of_vertex_[before];
  return block != kNoVertex && point.op >= blocks_[block].end_op ? behind_skipped(before) : before;
}

std::uint32_t SyncGraph::behind_skipped(std::uint32_t vertex) const {
  while (block_of_vertex_[vertex] != kNoVertex && blocks_[block_of_vertex_[vertex]].last_vertex == vertex) {
    vertex = blocks_[block_of_vertex_[vertex]].first_vertex - 1;
  }
  return vertex;
}

std::uint32_t SyncGraph::exit_of_block(std::uint32_t vertex) const {
  const std::uint32_t block = block_of_vertex_[vertex];
  if (block == kNoVertex) {
    return kNoVertex;
  }
  const WorkgroupRun& workgroup = workgroups_[vertices_[vertex].owner];
  const std::uint32_t next = blocks_[block].last_vertex + 1;
  return next < workgroup.first_vertex + workgroup.vertex_count ? next : runs_[workgroup.run].end;
}

}  // namespace tritax
