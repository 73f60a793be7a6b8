#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"
#include "model/workload/file_values.hpp"
#include "model/workloads/registry.hpp"
#include "sim/study/validate.hpp"

namespace tritax::embedded {
// File stems and texts of scenarios/measured; see cmake/TritaxModule.cmake.
std::span<const std::pair<std::string_view, std::string_view>> measured_tables();
std::span<const std::pair<std::string_view, std::string_view>> measured_scenarios();
}  // namespace tritax::embedded

namespace tritax {

namespace {

constexpr std::string_view kColumns =
    "id,pattern,runs,wall_us,wall_p10_us,wall_p90_us,device_us,device_p10_us,device_p90_us";

// Besides problem and knobs: columns that tell two measurements apart. A measurement may be repeated, but
// equal times are a duplicate.
constexpr std::string_view kRunAndTimes =
    "id,workload,pattern,warmup_runs,flush_bytes,pace_gb_per_s,wall_us,device_us";

constexpr std::string_view kWriter = "a file of 'tritax measure'";

MeasuredTime read_time(const CsvRow& line, std::string_view clock) {
  const std::string median = fmt::format("{}_us", clock);
  const auto time_ns = [&line](const std::string& column) {
    return 1e3 * line.positive(column, "a time in us");
  };
  const MeasuredTime time{time_ns(median), time_ns(fmt::format("{}_p10_us", clock)),
                          time_ns(fmt::format("{}_p90_us", clock))};
  if (time.median_ns < time.p10_ns || time.median_ns > time.p90_ns) {
    line.refuse(median, fmt::format("a median from {0}_p10_us = {1:.10g} to {0}_p90_us = {2:.10g}", clock,
                                    time.p10_ns * 1e-3, time.p90_ns * 1e-3));
  }
  return time;
}

// One column. Zero stands for a value that the pattern decides itself, if the lowest value that a user may
// give is above zero.
std::int64_t read_number(const CsvRow& line, const Spec& spec, const std::string& column) {
  switch (spec.kind) {
    case ValueKind::name:
      return static_cast<std::int64_t>(line.choice(column, spec.names));
    case ValueKind::boolean: {
      constexpr std::array<std::string_view, 2> switches{"false", "true"};
      return static_cast<std::int64_t>(line.choice(column, switches));
    }
    case ValueKind::file: {
      const std::string path(line.field(column));  // none is a value too
      return path.empty() ? 0 : number_of_file(path);
    }
    case ValueKind::integer:
    case ValueKind::bytes:
      break;
  }
  const bool may_be_left_out = !spec.required && spec.usual == std::array<std::int64_t, 3>{};
  return line.integer(column, may_be_left_out ? 0 : spec.low, spec.high);
}

// The column of the table with a property. Older tables may have another property in the column of that name.
std::string recorded_column(const CsvRow& line, std::span<const Spec> specs, const Spec& spec,
                            const std::string& column) {
  if (!spec.recorded_as.empty() && !line.has(column)) return std::string(spec.recorded_as);
  const bool taken = std::any_of(specs.begin(), specs.end(), [&](const Spec& other) {
    return other.recorded_as == column && !line.has(std::string(other.name));
  });
  return taken ? "" : column;
}

// Reads the columns of the table; required columns must exist.
void read_values(const CsvRow& line, Values& values) {
  for (std::size_t i = 0; i < values.specs().size(); ++i) {
    const Spec& spec = values.specs()[i];
    for (std::size_t part = 0; part < spec.columns(); ++part) {
      const std::string column = spec.column(part);
      const std::string recorded = recorded_column(line, values.specs(), spec, column);
      if (!spec.required && !line.has(recorded)) continue;
      values.give(column, read_number(line, spec, recorded));
    }
  }
}

MeasuredRow read_row(const CsvRow& line) {
  MeasuredRow row;
  row.where = line.where();
  row.id = line.text("id");
  const Workload& workload =
      line.has("workload") ? find_workload(line.text("workload"), row.where) : *workloads().front();
  std::vector<std::string_view> pattern_names;
  for (const Pattern& pattern : workload.patterns) pattern_names.push_back(pattern.name);
  row.pattern = pattern_names[line.choice("pattern", pattern_names)];
  row.problem = problem_of(workload);
  read_values(line, row.problem.values);
  complete_problem(row.problem, row.where);
  row.knobs = Values(workload.knobs);
  read_values(line, row.knobs);
  row.repeats = line.integer("runs", 1, std::numeric_limits<std::int32_t>::max());
  if (line.has("warmup_runs")) {
    row.warmup_runs = line.integer("warmup_runs", 0, std::numeric_limits<std::int32_t>::max());
  }
  if (line.has("flush_bytes")) row.flush_bytes = line.number("flush_bytes");
  // Nothing here depends on these two columns, but damage in them suggests damage elsewhere in the row.
  if (line.has("pace_gb_per_s")) line.number("pace_gb_per_s");
  if (line.has("relative_error")) line.number("relative_error", 0, kMostRelativeError);
  for (std::size_t clock = 0; clock < kMeasuredClockNames.size(); ++clock) {
    row.times[clock] = read_time(line, kMeasuredClockNames[clock]);
  }
  return row;
}

// Columns, separated by commas, that tell the rows of a table apart, for all workloads.
std::string telling_columns() {
  std::set<std::string> known;
  std::string columns(kRunAndTimes);
  for (const Workload* workload : workloads()) {
    for (const auto& specs : {workload->fields, workload->knobs}) {
      for (const Spec& spec : specs) {
        for (std::size_t part = 0; part < spec.columns(); ++part) {
          if (known.insert(spec.column(part)).second) columns += fmt::format(",{}", spec.column(part));
        }
      }
    }
  }
  return columns;
}

}  // namespace

MeasuredFile parse_measured(std::string_view csv, const std::string& origin) {
  MeasuredFile file;
  file.origin = origin;
  const std::string telling = telling_columns();
  UniqueRows once(telling);
  file.remarks = read_csv(csv, origin, kColumns, kWriter, [&file, &once](const CsvRow& line) {
    file.rows.push_back(read_row(line));
    once.add(line);
  });
  return file;
}

MeasuredFile read_measured(const std::string& path) {
  return parse_measured(read_csv_file(path, kWriter), path);
}

std::vector<MeasuredFile> shipped_measurements() {
  std::vector<MeasuredFile> files;
  for (const auto& [stem, text] : embedded::measured_tables()) {
    files.push_back(parse_measured(text, fmt::format("scenarios/measured/{}.csv", stem)));
  }
  return files;
}

std::vector<Scenario> shipped_measured_scenarios() {
  std::vector<Scenario> scenarios;
  for (const auto& [stem, text] : embedded::measured_scenarios()) {
    for (Scenario& scenario : parse_scenarios(text, fmt::format("scenarios/measured/{}.toml", stem))) {
      scenarios.push_back(std::move(scenario));
    }
  }
  return scenarios;
}

}  // namespace tritax
