#include "backend_hip/table.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "model/core/error.hpp"

namespace tritax::gpu {

namespace {

// Calls `visit(spec, part)` for every column of the values in the table, except GPUs, which stand before
// them.
template <typename Visit>
void for_each_column(const Values& values, const Visit& visit) {
  for (std::size_t i = 0; i < values.specs().size(); ++i) {
    const Spec& spec = values.specs()[i];
    if (spec.counts_gpus) continue;
    for (std::size_t part = 0; part < spec.columns(); ++part) visit(i, part);
  }
}

}  // namespace

std::string column_names(std::span<const Spec> specs) {
  std::string names;
  for_each_column(Values(specs), [&](std::size_t spec, std::size_t part) {
    names += fmt::format(",{}", specs[spec].column(part));
  });
  return names;
}

std::string column_values(const Values& values) {
  std::string text;
  for_each_column(values, [&](std::size_t spec, std::size_t part) {
    text += ',';
    text += values.specs()[spec].columns() == 1
                ? text_of(values, spec)
                : fmt::format("{}", values.at(values.first_column(spec) + part));
  });
  return text;
}

std::string spread_text(const Spread& spread) {
  return fmt::format("{:.2f},{:.2f},{:.2f}", spread.median, spread.p10, spread.p90);
}

const Workload& only_workload(const std::vector<Scenario>& scenarios) {
  if (scenarios.empty()) {
    throw UserError(
        "no scenario to measure: those of vendors' libraries are measured by backend_hip/baselines");
  }
  const Workload& first = *scenarios.front().problem.workload;
  for (const Scenario& scenario : scenarios) {
    if (scenario.problem.workload == &first) continue;
    throw UserError(fmt::format(
        "{}scenarios of one measurement are of one workload, and this is {}, not {}; choose by --id",
        place_of(scenario), scenario.problem.workload->name, first.name));
  }
  return first;
}

GrowingTable::GrowingTable(const std::string& path, const MeasureOptions& options, std::string_view columns)
    : path_(path) {
  if (path.empty()) return;
  if (std::filesystem::exists(path)) throw UserError(fmt::format("{}: exists already", path));
  out_.open(path);
  add(fmt::format("# {}\n# commit {}; command: {}\n{}", measurement_place(), options.commit, options.command,
                  columns));
}

void GrowingTable::add(const std::string& line) {
  if (!wanted()) return;
  out_ << line << std::endl;
  if (!out_) throw UserError(fmt::format("{}: cannot be written", path_));
}

}  // namespace tritax::gpu
