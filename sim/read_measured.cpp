#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <span>
#include <sstream>
#include <utility>

#include "model/core/error.hpp"
#include "sim/validate.hpp"

namespace tritax::embedded {
// File stems and texts of scenarios/measured; see cmake/TritaxModule.cmake.
std::span<const std::pair<std::string_view, std::string_view>> measured_tables();
std::span<const std::pair<std::string_view, std::string_view>> measured_scenarios();
}  // namespace tritax::embedded

namespace tritax {

namespace {

constexpr std::string_view kColumns =
    "id,pattern,gpus,m,n,k,dtype,tile_m,tile_n,tile_k,gemm_cus,comm_cus,group_m,peer_order,lock,launch,"
    "runs,"
    "wall_us,wall_p10_us,wall_p90_us,device_us,device_p10_us,device_p90_us";

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = line.find(',', begin);
    fields.push_back(line.substr(begin, comma == std::string_view::npos ? comma : comma - begin));
    if (comma == std::string_view::npos) return fields;
    begin = comma + 1;
  }
}

// The column names of a file and where each stands.
class Header {
 public:
  Header(std::string_view line, std::string where) : where_(std::move(where)) {
    for (const std::string_view name : split(line)) {
      if (!places_.emplace(name, places_.size()).second) {
        throw UserError(fmt::format("{}: column '{}' appears twice", where_, name));
      }
    }
    for (const std::string_view name : split(kColumns)) require(name);
  }

  std::size_t size() const { return places_.size(); }
  std::size_t place(std::string_view name) const { return places_.at(std::string(name)); }

 private:
  void require(std::string_view name) const {
    if (places_.count(std::string(name)) > 0) return;
    std::vector<std::string> names;
    for (const auto& [known, place] : places_) names.push_back(known);
    const std::string nearest = nearest_name(std::string(name), names);
    throw UserError(
        fmt::format("{}: column '{}' is missing{}; a file of measurements has the columns that 'tritax-gpu "
                    "measure' writes",
                    where_, name, nearest.empty() ? "" : fmt::format(" (is '{}' it?)", nearest)));
  }

  std::string where_;
  std::map<std::string, std::size_t> places_;
};

// One line, read column by column.
class Line {
 public:
  Line(const Header& header, std::string_view text, std::string where)
      : header_(header), fields_(split(text)), where_(std::move(where)) {
    if (fields_.size() != header_.size()) {
      throw UserError(fmt::format("{}: {} fields, but the header names {} columns", where_, fields_.size(),
                                  header_.size()));
    }
  }

  const std::string& where() const { return where_; }

  std::string text(std::string_view column) const {
    const std::string_view value = field(column);
    if (value.empty()) refuse(column, "a value");
    return std::string(value);
  }

  std::int64_t integer(std::string_view column, std::int64_t lowest, std::int64_t highest) const {
    const std::string_view value = field(column);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (!whole || number < lowest || number > highest) {
      refuse(column, fmt::format("a whole number from {} to {}", lowest, highest));
    }
    return number;
  }

  // In us, above 0; returned in ns.
  double time_ns(std::string_view column) const {
    const std::string_view value = field(column);
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    if (!whole || !std::isfinite(number) || number <= 0) refuse(column, "a time in us above 0");
    return number * 1e3;
  }

  template <typename Names>
  std::size_t choice(std::string_view column, const Names& names) const {
    const std::string_view value = field(column);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == value) return i;
    }
    refuse(column, fmt::format("{}", fmt::join(names, ", ")));
  }

  [[noreturn]] void refuse(std::string_view column, const std::string& allowed) const {
    throw UserError(fmt::format("{}: column '{}': '{}' is not allowed; allowed: {}", where_, column,
                                field(column), allowed));
  }

 private:
  std::string_view field(std::string_view column) const { return fields_[header_.place(column)]; }

  const Header& header_;
  std::vector<std::string_view> fields_;
  std::string where_;
};

MeasuredTime read_time(const Line& line, std::string_view clock) {
  const std::string median = fmt::format("{}_us", clock);
  const MeasuredTime time{line.time_ns(median), line.time_ns(fmt::format("{}_p10_us", clock)),
                          line.time_ns(fmt::format("{}_p90_us", clock))};
  if (time.median_ns < time.p10_ns || time.median_ns > time.p90_ns) {
    line.refuse(median, fmt::format("a median from {0}_p10_us = {1:g} to {0}_p90_us = {2:g}", clock,
                                    time.p10_ns * 1e-3, time.p90_ns * 1e-3));
  }
  return time;
}

Knobs read_knobs(const Line& line) {
  constexpr std::int64_t kMaxTile = 4096;
  constexpr std::int64_t kMaxCount = 1 << 20;
  const auto small = [&](std::string_view column, std::int64_t lowest, std::int64_t highest) {
    return static_cast<std::int32_t>(line.integer(column, lowest, highest));
  };
  Knobs knobs;
  knobs.tile_m = small("tile_m", 1, kMaxTile);
  knobs.tile_n = small("tile_n", 1, kMaxTile);
  knobs.tile_k = small("tile_k", 1, kMaxTile);
  knobs.gemm_cus = small("gemm_cus", 0, kMaxCount);
  knobs.comm_cus = small("comm_cus", 0, kMaxCount);
  knobs.group_m = small("group_m", 1, kMaxCount);
  knobs.peer_order = static_cast<PeerOrder>(line.choice("peer_order", kPeerOrderNames));
  knobs.lock = static_cast<LockProtocol>(line.choice("lock", kLockProtocolNames));
  knobs.launch = static_cast<LaunchMode>(line.choice("launch", kLaunchModeNames));
  return knobs;
}

MeasuredRow read_row(const Line& line) {
  constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;  // as in model/workload
  constexpr std::int64_t kMaxGpus = 1024;
  std::vector<std::string_view> pattern_names;
  for (const Pattern& pattern : patterns()) pattern_names.push_back(pattern.name);
  MeasuredRow row;
  row.where = line.where();
  row.id = line.text("id");
  row.pattern = pattern_names[line.choice("pattern", pattern_names)];
  row.workload.gpus = static_cast<int>(line.integer("gpus", 1, kMaxGpus));
  row.workload.m = line.integer("m", 1, kMaxSize);
  row.workload.n = line.integer("n", 1, kMaxSize);
  row.workload.k = line.integer("k", 1, kMaxSize);
  row.workload.dtype = static_cast<DType>(line.choice("dtype", kDTypeNames));
  check(row.workload, row.where);
  row.knobs = read_knobs(line);
  row.repeats = line.integer("runs", 1, std::numeric_limits<std::int32_t>::max());
  for (std::size_t clock = 0; clock < kMeasuredClockNames.size(); ++clock) {
    row.times[clock] = read_time(line, kMeasuredClockNames[clock]);
  }
  return row;
}

}  // namespace

MeasuredFile parse_measured(std::string_view csv, const std::string& origin) {
  MeasuredFile file;
  file.origin = origin;
  std::optional<Header> header;
  for (int number = 1; !csv.empty(); ++number) {
    const std::size_t end = std::min(csv.find('\n'), csv.size());
    std::string_view text = csv.substr(0, end);
    csv.remove_prefix(std::min(end + 1, csv.size()));
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    const std::string where = fmt::format("{}:{}", origin, number);
    if (text.empty()) continue;
    if (text.front() == '#') {
      file.remarks.emplace_back(text.substr(std::min(text.find_first_not_of("# "), text.size())));
    } else if (!header) {
      header.emplace(text, where);
    } else {
      file.rows.push_back(read_row(Line(*header, text, where)));
    }
  }
  if (file.rows.empty()) {
    throw UserError(
        fmt::format("{}: no measurements; a file holds a line of column names and at least one row", origin));
  }
  return file;
}

MeasuredFile read_measured(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in.is_open() || in.bad()) {
    throw UserError(
        fmt::format("{}: cannot be read; give the path of a CSV file of 'tritax-gpu measure'", path));
  }
  return parse_measured(text.str(), path);
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
