#include <fmt/format.h>

#include <limits>
#include <span>
#include <utility>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"
#include "sim/study/validate.hpp"

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

// What ran and how long it took. The same may be measured twice, but not with the same times.
constexpr std::string_view kRunAndTimes =
    "id,pattern,gpus,m,n,k,dtype,tile_m,tile_n,tile_k,gemm_cus,comm_cus,group_m,peer_order,lock,launch,"
    "warmup_runs,flush_bytes,pace_gb_per_s,wall_us,device_us";

constexpr std::string_view kWriter = "tritax measure";

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

Knobs read_knobs(const CsvRow& line) {
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

MeasuredRow read_row(const CsvRow& line) {
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
  if (line.has("warmup_runs")) {
    row.warmup_runs = line.integer("warmup_runs", 0, std::numeric_limits<std::int32_t>::max());
  }
  if (line.has("flush_bytes")) row.flush_bytes = line.number("flush_bytes");
  // Nothing here depends on these two, but a row that is damaged there may be damaged elsewhere.
  if (line.has("pace_gb_per_s")) line.number("pace_gb_per_s");
  if (line.has("relative_error")) line.number("relative_error", 0, kMostRelativeError);
  for (std::size_t clock = 0; clock < kMeasuredClockNames.size(); ++clock) {
    row.times[clock] = read_time(line, kMeasuredClockNames[clock]);
  }
  return row;
}

}  // namespace

MeasuredFile parse_measured(std::string_view csv, const std::string& origin) {
  MeasuredFile file;
  file.origin = origin;
  UniqueRows once(kRunAndTimes);
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
