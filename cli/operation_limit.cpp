#include "cli/operation_limit.hpp"

#include <fmt/format.h>

#include <limits>

#include "cli/options.hpp"
#include "model/core/error.hpp"
#include "model/schedule/operations.hpp"

namespace tritax::cli {

namespace {

constexpr std::uint64_t kBetweenUpdates = 1 << 14;  // operations; a few milliseconds

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

}  // namespace

void add_max_operations_option(CLI::App& app, std::optional<std::int64_t>& most) {
  add_integer(
      app, "--max-operations", most,
      fmt::format("Refuse a schedule with more operations over all runs (default: {}; a core simulates 0.5 "
                  "to 2 million per second)",
                  kUsualMaxOperations),
      1, std::numeric_limits<std::int64_t>::max());
}

void require_few_operations(const Schedule& schedule, int runs, const std::optional<std::int64_t>& most,
                            std::string_view fewer) {
  const std::uint64_t operations = executed_operations(schedule);
  const auto limit = static_cast<std::uint64_t>(most.value_or(kUsualMaxOperations));
  if (operations <= limit / static_cast<std::uint64_t>(runs)) return;
  throw UserError(
      fmt::format("{} operations on {} GPUs{}; --max-operations allows {}. Give a higher --max-operations, "
                  "{}or use fewer GPUs or "
                  "larger tiles",
                  with_commas(operations), schedule.ranks,
                  runs > 1 ? fmt::format(", simulated {} times, are {}", runs,
                                         with_commas(operations * static_cast<std::uint64_t>(runs)))
                           : " are too many to simulate",
                  with_commas(limit), fewer));
}

void ProgressOfOperations::op_finished(const OpPlace& /*place*/, double /*time_ns*/) {
  const std::uint64_t done = ++done_;
  if (done % kBetweenUpdates == 0) bar_.update(done, expected_);
}

}  // namespace tritax::cli
