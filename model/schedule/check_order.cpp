// Reads of data that nothing orders behind its writes.
#include <fmt/format.h>

#include <algorithm>

#include "model/schedule/accesses.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/sync_graph.hpp"

namespace tritax {

namespace {

using Kind = Finding::Kind;

// How the write of a conflict stands to its read.
enum class Order : std::uint8_t { before, after, none };

std::vector<Order> order_conflicts(const SyncGraph& graph, const Accesses& accesses) {
  const std::vector<Conflict>& conflicts = accesses.read_write;
  std::vector<OrderQuery> queries;
  queries.reserve(conflicts.size());
  for (const Conflict& conflict : conflicts) {
    queries.push_back({accesses.list[conflict.second].at, accesses.list[conflict.first].at});
  }
  const std::vector<char> before = are_ordered(graph, queries);

  std::vector<Order> order(conflicts.size(), Order::before);
  std::vector<std::size_t> open;
  queries.clear();
  for (std::size_t i = 0; i < conflicts.size(); ++i) {
    if (before[i] == 0) {
      const OpPoint& read = accesses.list[conflicts[i].first].at;
      const OpPoint& write = accesses.list[conflicts[i].second].at;
      const bool same = read.workgroup_run == write.workgroup_run;  // a copy onto itself is no order problem
      order[i] = Order::after;
      if (!same) {
        open.push_back(i);
        queries.push_back({read, write});
      }
    }
  }
  const std::vector<char> after = are_ordered(graph, queries);
  for (std::size_t i = 0; i < open.size(); ++i) {
    order[open[i]] = after[i] != 0 ? Order::after : Order::none;
  }
  return order;
}

// Takes `rect` out of `rests`, which are disjoint.
void subtract(std::vector<Rect>& rests, const Rect& rect) {
  std::vector<Rect> left;
  for (const Rect& rest : rests) {
    if (!overlap(rest, rect)) {
      left.push_back(rest);
      continue;
    }
    const std::int32_t top = std::max(rest.row, rect.row);
    const std::int32_t bottom = std::min(rest.row + rest.rows, rect.row + rect.rows);
    const std::int32_t from = std::max(rest.col, rect.col);
    const std::int32_t to = std::min(rest.col + rest.cols, rect.col + rect.cols);
    const auto keep = [&left](std::int32_t row, std::int32_t col, std::int32_t rows, std::int32_t cols) {
      if (rows > 0 && cols > 0) {
        left.push_back({row, col, rows, cols});
      }
    };
    keep(rest.row, rest.col, top - rest.row, rest.cols);
    keep(bottom, rest.col, rest.row + rest.rows - bottom, rest.cols);
    keep(top, rest.col, bottom - top, from - rest.col);
    keep(top, to, bottom - top, rest.col + rest.cols - to);
  }
  rests = std::move(left);
}

void check_read(const SyncGraph& graph, const Accesses& accesses, std::uint32_t read,
                std::size_t first_conflict, std::size_t last_conflict, const std::vector<Order>& order,
                Findings& findings) {
  const Access& access = accesses.list[read];
  const Schedule& schedule = graph.schedule();
  std::vector<Rect> unwritten{access.rect};
  for (std::size_t i = first_conflict; i < last_conflict; ++i) {
    const Access& write = accesses.list[accesses.read_write[i].second];
    if (order[i] == Order::none) {
      findings.add(
          Kind::unordered_read, graph.describe(access.at),
          fmt::format("reads {}, which {} writes as {}; nothing orders one before the other: signal a flag "
                      "after the write and wait for it before the read, or put a kernel boundary or host "
                      "barrier between them",
                      describe_tile(schedule, access.buffer, access.rect, access.rank),
                      graph.describe(write.at),
                      describe_tile(schedule, write.buffer, write.rect, write.rank)));
      return;
    }
    if (order[i] == Order::before) {
      subtract(unwritten, write.rect);
    }
  }
  if (!unwritten.empty()) {
    findings.add(
        Kind::unordered_read, graph.describe(access.at),
        fmt::format("reads {}, but nothing writes {} before; other parts of the buffer are written, so it is "
                    "no input",
                    describe_tile(schedule, access.buffer, access.rect, access.rank),
                    describe_tile(schedule, access.buffer, unwritten.front(), access.rank)));
  }
}

}  // namespace

void check_order(const SyncGraph& graph, Findings& findings) {
  const Accesses accesses = find_accesses(graph);
  const std::vector<Order> order = order_conflicts(graph, accesses);
  std::size_t conflict = 0;
  for (std::uint32_t read = 0; read < accesses.list.size() && !findings.full(); ++read) {
    if (accesses.list[read].kind != AccessKind::read) {
      continue;
    }
    const std::size_t first = conflict;
    while (conflict < accesses.read_write.size() && accesses.read_write[conflict].first == read) {
      ++conflict;
    }
    check_read(graph, accesses, read, first, conflict, order, findings);
  }
}

}  // namespace tritax
