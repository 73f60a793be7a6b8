// Checks reads of data that nothing orders after the writes of the data.
#include <fmt/format.h>

#include <algorithm>

#include "model/schedule/accesses.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/sync_graph.hpp"

namespace tritax {

namespace {

using Kind = Finding::Kind;

// Order between the writes and the read of every conflict.
std::vector<Sides> order_conflicts(const SyncGraph& graph, const Accesses& accesses) {
  std::vector<SideQuery> queries;
  queries.reserve(accesses.read_write.size());
  for (const Conflict& conflict : accesses.read_write) {
    const WriteGroup& writes = accesses.writes[conflict.second];
    queries.push_back(
        {accesses.reads[conflict.first].at, writes.first.at.workgroup_run, accesses.ops_of(writes)});
  }
  return sides_of(graph, queries);
}

void check_read(const SyncGraph& graph, const Accesses& accesses, std::uint32_t read,
                std::size_t first_conflict, std::size_t last_conflict, const std::vector<Sides>& order,
                Findings& findings) {
  const Access& access = accesses.reads[read];
  const Schedule& schedule = graph.schedule();
  const char* verb = access.kind == AccessKind::atomic_add ? "adds to" : "reads";
  std::vector<Rect> unwritten{access.rect};
  for (std::size_t i = first_conflict; i < last_conflict; ++i) {
    const WriteGroup& writes = accesses.writes[accesses.read_write[i].second];
    const Access& write = writes.first;
    if (order[i].before < order[i].after) {
      const OpPoint unordered{write.at.workgroup_run, accesses.ops_of(writes)[order[i].before]};
      findings.add(
          Kind::unordered_read, graph.describe(access.at),
          fmt::format("{} {}, which {} writes as {}; nothing orders one before the other: signal a flag "
                      "after the write and wait for it before the read, or put a kernel boundary or host "
                      "barrier between them",
                      verb, describe_tile(schedule, access.buffer, access.rect, access.rank),
                      graph.describe(unordered),
                      describe_tile(schedule, write.buffer, write.rect, write.rank)));
      return;
    }
    if (order[i].before > 0) {
      subtract(unwritten, write.rect);
    }
  }
  subtract_inputs(schedule, access.buffer, access.rank, unwritten);
  if (!unwritten.empty()) {
    const char* no_input = schedule.inputs.empty()
                               ? "other parts of the buffer are written, so it is not an input"
                               : "it is in no input of the schedule";
    findings.add(
        Kind::unordered_read, graph.describe(access.at),
        fmt::format("{} {}, but nothing writes {} before; {}", verb,
                    describe_tile(schedule, access.buffer, access.rect, access.rank),
                    describe_tile(schedule, access.buffer, unwritten.front(), access.rank), no_input));
  }
}

}  // namespace

void check_order(const SyncGraph& graph, Findings& findings) {
  const Accesses accesses = find_accesses(graph);
  const std::vector<Sides> order = order_conflicts(graph, accesses);
  std::size_t conflict = 0;
  for (std::uint32_t read = 0; read < accesses.reads.size() && !findings.full(); ++read) {
    const std::size_t first = conflict;
    while (conflict < accesses.read_write.size() && accesses.read_write[conflict].first == read) {
      ++conflict;
    }
    check_read(graph, accesses, read, first, conflict, order, findings);
  }
}

}  // namespace tritax
