#include "sim/study/timed_problems.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"
#include "model/select/decision_tree.hpp"
#include "model/select/selector.hpp"

namespace tritax {

namespace {

struct ColumnUnit {
  std::string_view suffix;
  double ns = 1;
};
constexpr std::array<ColumnUnit, 4> kColumnUnits{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr std::string_view kTimesWriter = "a table of times";

// A column of times: its unit, and its name without the unit.
struct TimeColumn {
  std::string column;
  std::string name;
  double ns = 1;
};

TimeColumn time_column(const std::string& column, std::string_view flag) {
  for (const ColumnUnit& unit : kColumnUnits) {
    const std::string ending = fmt::format("_{}", unit.suffix);
    if (column.size() > ending.size() && column.ends_with(ending)) {
      return {column, column.substr(0, column.size() - ending.size()), unit.ns};
    }
  }
  throw UserError(fmt::format("{}: '{}' does not say its unit; columns of times end in _ns, _us, _ms or _s",
                              flag, column));
}

// A request for a table, checked as far as possible without the table.
struct TableReader {
  TableReader(const std::string& file, const TimesColumns& columns) : path(file), asked(columns) {
    for (const std::string& column : asked.times) {
      options.push_back(time_column(column, "--times"));
      if (!is_option_name(options.back().name)) {
        throw UserError(fmt::format(
            "--times: '{}' cannot be the name of an option; name the column with letters, digits and _",
            column));
      }
    }
    if (options.size() < 2) throw UserError("--times: give at least two columns to choose among");
    if (asked.known.empty())
      throw UserError("--features: missing; give the columns that need no pass over the data");
    require_gather_time(asked);
    if (!asked.baseline.empty()) baseline = time_column(asked.baseline, "--baseline");
    if (!asked.gather_time.empty()) {
      gather_ns = written_time(asked.gather_time);
      if (!gather_ns) gather = time_column(asked.gather_time, "--gather-time");
    }
  }

  void require_columns(const CsvRow& row) const {
    const auto require = [&](std::string_view flag, const std::string& column) {
      if (!column.empty() && !row.has(column)) {
        throw UserError(fmt::format("{}: {} has no column '{}'", flag, path, column));
      }
    };
    for (const TimeColumn& option : options) require("--times", option.column);
    for (const auto& [flag, features] :
         {std::pair{"--features", &asked.known}, std::pair{"--gathered", &asked.gathered}}) {
      for (const std::string& feature : *features) {
        for (const std::string& name : names_in_feature(feature, fmt::format("{}: ", flag)))
          require(flag, name);
      }
    }
    if (gather) require("--gather-time", gather->column);
    require("--group", asked.group);
    require("--heuristic", asked.heuristic);
    require("--baseline", asked.baseline);
  }

  static double value_of(const CsvRow& row, const std::string& feature) {
    return feature_value(feature, [&](std::string_view name) {
      return row.number(name, std::numeric_limits<double>::lowest());
    });
  }

  static double time_of(const CsvRow& row, const TimeColumn& column) {
    const double value = row.field(column.column).empty() ? 0 : row.number(column.column);
    return value == 0 ? kNever : value * column.ns;
  }

  void add(const CsvRow& row) {
    if (result.rows.empty() && result.left_out == 0) require_columns(row);
    TimedProblem problem;
    for (const TimeColumn& option : options) problem.time_ns.push_back(time_of(row, option));
    if (problem.best_ns() == kNever) {
      ++result.left_out;
      return;
    }
    for (const std::string& feature : asked.known) problem.features.push_back(value_of(row, feature));
    for (const std::string& feature : asked.gathered) problem.features.push_back(value_of(row, feature));
    if (!asked.gathered.empty())
      problem.gather_ns = gather_ns ? *gather_ns : row.number(gather->column) * gather->ns;
    if (baseline && time_of(row, *baseline) != kNever) problem.baseline_ns = time_of(row, *baseline);
    if (!asked.heuristic.empty() && !row.field(asked.heuristic).empty()) {
      std::vector<std::string_view> names;
      for (const TimeColumn& option : options) names.push_back(option.name);
      problem.heuristic = row.choice(asked.heuristic, names);
    }
    const std::string group = asked.group.empty() ? row.where() : row.text(asked.group);
    problem.group = groups.emplace(group, groups.size()).first->second;
    result.rows.push_back(std::move(problem));
  }

  const std::string& path;
  const TimesColumns& asked;
  std::vector<TimeColumn> options;
  std::optional<TimeColumn> baseline, gather;
  std::optional<double> gather_ns;
  std::map<std::string, std::size_t> groups;
  TimedProblems result;
};

std::uint64_t mixed(std::uint64_t value) {  // splitmix64
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
  value = (value ^ value >> 27) * 0x94D049BB133111EBu;
  return value ^ value >> 31;
}

}  // namespace

std::optional<double> written_time(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const ColumnUnit& unit : kColumnUnits) {
    if (rest == unit.suffix && value >= 0) return value * unit.ns;
  }
  throw UserError(fmt::format(
      "--gather-time: '{}' is not a time; give a column, or a number with ns, us, ms or s", text));
}

void require_gather_time(const TimesColumns& columns) {
  if (columns.gathered.empty() == columns.gather_time.empty()) return;
  throw UserError(columns.gathered.empty() ? "--gather-time: nothing is gathered; give --gathered too"
                                           : "--gather-time: missing; say how long the pass takes");
}

double TimedProblem::best_ns() const { return *std::min_element(time_ns.begin(), time_ns.end()); }

std::vector<std::string> TimedProblems::features() const {
  std::vector<std::string> all = known;
  all.insert(all.end(), gathered.begin(), gathered.end());
  return all;
}

TimedProblems read_timed_problems(const std::string& path, const TimesColumns& columns) {
  TableReader reader(path, columns);
  read_csv(read_csv_file(path, kTimesWriter), path, columns.times.front(), kTimesWriter,
           [&](const CsvRow& row) { reader.add(row); });
  TimedProblems& result = reader.result;
  for (const TimeColumn& option : reader.options) result.options.push_back(option.name);
  const std::set<std::string> names(result.options.begin(), result.options.end());
  if (names.size() < result.options.size()) {
    throw UserError(
        fmt::format("--times: two columns are the same option; got {}", fmt::join(result.options, ", ")));
  }
  if (result.rows.size() < 2) {
    throw UserError(
        fmt::format("{}: {} rows have a time; a tree needs two at least", path, result.rows.size()));
  }
  result.known = columns.known;
  result.gathered = columns.gathered;
  result.groups = reader.groups.size();
  return std::move(result);
}

TimedProblems timed_problems(const ChoiceTable& table, const std::vector<std::string>& known) {
  TimedProblems result;
  result.options = table.options;
  std::vector<std::string> numbers = table.numbers;
  for (std::string& number : numbers) std::replace(number.begin(), number.end(), ' ', '_');
  result.known = known.empty() ? numbers : known;
  if (result.options.size() < 2) throw UserError("there is only one option, so nothing to choose");
  for (std::size_t i = 0; i < table.problems.size(); ++i) {
    TimedProblem& problem = result.rows.emplace_back();
    for (const std::string& feature : result.known) {
      names_in_feature(feature, "--features: ");
      problem.features.push_back(feature_value(feature, [&](std::string_view name) {
        const auto found = std::find(numbers.begin(), numbers.end(), name);
        if (found == numbers.end()) {
          throw UserError(fmt::format("--features: there is no '{}'; features are of {}", name,
                                      fmt::join(numbers, ", ")));
        }
        return static_cast<double>(table.problems[i][static_cast<std::size_t>(found - numbers.begin())]);
      }));
    }
    problem.time_ns = table.time_ns[i];
    problem.group = i;
  }
  result.groups = result.rows.size();
  return result;
}

std::vector<std::size_t> folds_of(const TimedProblems& problems, std::size_t folds, std::uint64_t seed) {
  if (problems.groups < folds) {
    throw UserError(
        fmt::format("--folds: {} groups of problems are too few for {} folds", problems.groups, folds));
  }
  std::vector<std::size_t> order(problems.groups);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return mixed(mixed(seed) + a) < mixed(mixed(seed) + b); });
  std::vector<std::size_t> of_group(problems.groups);
  for (std::size_t i = 0; i < order.size(); ++i) of_group[order[i]] = i % folds;
  std::vector<std::size_t> of_row;
  for (const TimedProblem& problem : problems.rows) of_row.push_back(of_group[problem.group]);
  return of_row;
}

}  // namespace tritax
