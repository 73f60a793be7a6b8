#include "model/schedule/check.hpp"

#include <fmt/format.h>

#include "model/core/error.hpp"
#include "model/schedule/find_phases.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

std::string describe_kernel(const Schedule& schedule, std::size_t kernel) {
  return fmt::format("kernel '{}' rank {}", schedule.kernels[kernel].name, schedule.kernels[kernel].rank);
}

std::string describe_host_op(const Schedule& schedule, std::size_t rank, std::size_t op) {
  return fmt::format("host operation {} ({}) of rank {}", op, name_of(schedule.host[rank][op].kind), rank);
}

std::string describe_tile(const Schedule& schedule, std::int32_t buffer, const Rect& rect,
                          std::int32_t rank) {
  return fmt::format("{}[{}:{}, {}:{}] of rank {}", schedule.buffers[static_cast<std::size_t>(buffer)].name,
                     rect.row, std::int64_t{rect.row} + rect.rows, rect.col,
                     std::int64_t{rect.col} + rect.cols, rank);
}

std::string describe_flag(const Schedule& schedule, std::int32_t flag, std::int32_t index,
                          std::int32_t rank) {
  return fmt::format("{}[{}] of rank {}", schedule.flags[static_cast<std::size_t>(flag)].name, index, rank);
}

std::string describe_program(const Kernel& kernel, std::size_t number) {
  const std::size_t workgroups = kernel.workgroups.size();
  return number < workgroups ? fmt::format("workgroup {}", number)
                             : fmt::format("item {}", number - workgroups);
}

std::string describe_op(const Schedule& schedule, std::size_t kernel, std::size_t program, std::size_t op) {
  TRITAX_ASSERT(kernel < schedule.kernels.size() && program < program_count(schedule.kernels[kernel]),
                "the place of an operation lies inside the schedule");
  const Kernel& of = schedule.kernels[kernel];
  const Workgroup& range = program_of(of, program);
  const std::size_t index = range.first_op + op;
  TRITAX_ASSERT(index < schedule.ops.size(), "the place of an operation lies inside the schedule");
  std::string where = describe_kernel(schedule, kernel) + " " + describe_program(of, program);
  const std::int32_t drawn = op >= range.op_count ? item_of(of, static_cast<std::uint32_t>(index)) : -1;
  if (drawn >= 0) {
    const auto item = static_cast<std::size_t>(drawn);
    op = index - of.items[item].first_op;
    where += " " + describe_program(of, of.workgroups.size() + item);
  }
  return fmt::format("{} operation {} ({})", where, op, name_of(schedule.ops[index].kind));
}

std::vector<Finding> check_schedule(const Schedule& schedule, std::size_t limit) {
  Findings findings(limit);
  check_ranges(schedule, findings);
  if (findings.empty()) {
    const SyncGraph graph = sync_graph_of(schedule);
    check_progress(graph, findings);
    // Operations that are never reached have no order either; messages about their order would only hide the
    // cause.
    if (findings.empty()) {
      check_order(graph, findings);
    }
  }
  return findings.take();
}

void require_sound(const std::vector<Finding>& findings, const std::string& origin) {
  constexpr std::size_t kShown = 5;
  if (findings.empty()) {
    return;
  }
  std::string message = fmt::format("{}: the schedule is not sound:", origin);
  for (std::size_t i = 0; i < findings.size() && i < kShown; ++i) {
    message +=
        fmt::format("\n  {}: {}", findings[i].where, with_count(findings[i].message, findings[i].count));
  }
  if (findings.size() > kShown) {
    message += fmt::format("\n  and {} more", findings.size() - kShown);
  }
  throw UserError(message);
}

}  // namespace tritax
