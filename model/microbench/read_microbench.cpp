#include "model/microbench/read_microbench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"

namespace tritax {

namespace {

constexpr std::string_view kWriter = "a file of 'tritax-gpu microbench'";

// Finds rows of the table by what a file says of them.
class RowIndex {
 public:
  RowIndex(const std::vector<Microbench>& benches, int gpus, int compute_units)
      : node_(fmt::format("{} GPUs of {} compute units", gpus, compute_units)) {
    for (std::size_t bench = 0; bench < benches.size(); ++bench) {
      for (std::size_t i = 0; i < benches[bench].rows.size(); ++i) {
        const MicrobenchRow& row = benches[bench].rows[i];
        names_[row.group].insert(row.name);
        places_[{row.group, row.name, row.parameter_text()}] = {bench, i};
      }
    }
  }

  std::pair<std::size_t, std::size_t> find(const CsvRow& line) const {
    const std::string group = line.text("group");
    const auto names = names_.find(group);
    if (names == names_.end()) line.refuse("group", fmt::format("{}", fmt::join(kMicrobenchGroups, ", ")));
    const std::string name = line.text("name");
    if (!names->second.contains(name)) line.refuse("name", fmt::format("{}", fmt::join(names->second, ", ")));
    const std::string parameters = line.text("parameters");
    const auto found = places_.find({group, name, parameters});
    if (found != places_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [key, place] : places_) {
      if (std::get<0>(key) == group && std::get<1>(key) == name) known.push_back(std::get<2>(key));
    }
    const std::string nearest = nearest_name(parameters, known);
    line.refuse("parameters", fmt::format("the microbenchmarks of a node with {}, such as '{}'", node_,
                                          nearest.empty() ? known.front() : nearest));
  }

 private:
  std::string node_;
  std::map<std::string, std::set<std::string>, std::less<>> names_;  // of a group
  std::map<std::tuple<std::string, std::string, std::string>, std::pair<std::size_t, std::size_t>> places_;
};

MeasuredMicrobench read_row(const CsvRow& line, const RowIndex& index) {
  MeasuredMicrobench measured;
  std::tie(measured.bench, measured.row) = index.find(line);
  measured.value = line.positive("value", "a number");
  measured.time_us = line.positive("time_us", "a time in us");
  measured.time_p10_us = line.positive("time_p10_us", "a time in us");
  measured.time_p90_us = line.positive("time_p90_us", "a time in us");
  measured.runs = static_cast<int>(line.integer("runs", 1, std::numeric_limits<int>::max()));
  if (measured.time_us < measured.time_p10_us || measured.time_us > measured.time_p90_us) {
    line.refuse("time_us", fmt::format("a median from time_p10_us = {:.10g} to time_p90_us = {:.10g}",
                                       measured.time_p10_us, measured.time_p90_us));
  }
  return measured;
}

}  // namespace

MicrobenchTable parse_microbench(std::string_view text, const std::string& origin, int gpus,
                                 int compute_units) {
  MicrobenchTable table;
  table.origin = origin;
  table.benches = microbenchmarks(gpus, compute_units);
  const RowIndex index(table.benches, gpus, compute_units);
  std::map<std::pair<std::size_t, std::size_t>, std::string> seen;
  const auto remarks = read_csv(text, origin, kMicrobenchColumns, kWriter, [&](const CsvRow& line) {
    const MeasuredMicrobench row = read_row(line, index);
    const std::string& unit = table.benches[row.bench].rows[row.row].unit;
    if (line.text("unit") != unit) line.refuse("unit", unit);
    const auto [first, added] = seen.emplace(std::pair{row.bench, row.row}, line.where());
    if (!added) {
      line.refuse("parameters", fmt::format("each microbenchmark once; {} has it already", first->second));
    }
    table.rows.push_back(row);
  });
  if (!remarks.empty()) table.place = remarks.front();
  return table;
}

MicrobenchTable read_microbench(const std::string& path, int gpus, int compute_units) {
  return parse_microbench(read_csv_file(path, kWriter), path, gpus, compute_units);
}

MicrobenchTable read_microbench(const std::vector<std::string>& paths, int gpus, int compute_units) {
  TRITAX_ASSERT(!paths.empty(), "no file of microbenchmarks");
  MicrobenchTable all = read_microbench(paths.front(), gpus, compute_units);
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const MicrobenchTable more = read_microbench(paths[i], gpus, compute_units);
    for (const MeasuredMicrobench& row : more.rows) {
      const bool again = std::any_of(all.rows.begin(), all.rows.end(), [&](const MeasuredMicrobench& other) {
        return other.bench == row.bench && other.row == row.row && other.time_us == row.time_us &&
               other.time_p10_us == row.time_p10_us && other.time_p90_us == row.time_p90_us;
      });
      if (again) {
        const MicrobenchRow& what = more.row(row);
        throw UserError(
            fmt::format("{}: {} {} {}: an earlier file has this measurement too, {:.10g} us; allowed: each "
                        "once, or others of the same",
                        paths[i], what.group, what.name, what.parameter_text(), row.time_us));
      }
      all.rows.push_back(row);
    }
    all.origin += " and " + more.origin;
    if (!more.place.empty() && more.place != all.place) all.place += " and " + more.place;
  }
  return all;
}

}  // namespace tritax
