// How model/microbench/cases.cpp and cases_matrix.cpp make the table of microbenchmarks. For these two files
// only.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "model/microbench/cases.hpp"
#include "model/microbench/schedules.hpp"

namespace tritax {

inline constexpr std::int64_t kMebibyte = 1 << 20;
inline constexpr double kGbPerSecond = 1e-3;  // of a byte a microsecond

using Parameters = std::vector<std::pair<std::string, std::string>>;

template <typename... Rest>
Parameters parameters(const char* name, const auto& value, const Rest&... rest) {
  Parameters all;
  if constexpr (sizeof...(rest) > 0) all = parameters(rest...);
  all.insert(all.begin(), {name, fmt::format("{}", value)});
  return all;
}

inline std::string tile_text(std::int32_t m, std::int32_t n) { return fmt::format("{}x{}", m, n); }

// Long enough that starting the kernel does not count, short enough that a lone workgroup comes to an end.
inline std::int64_t bytes_for(int workgroups) {
  return std::min(256 * kMebibyte, 16 * kMebibyte * workgroups);
}

inline constexpr std::array kMatrixTypes{DType::bf16, DType::fp16, DType::fp8};

// Makes the table, group by group.
class Cases {
 public:
  Cases(int gpus, int compute_units) : gpus_(gpus), compute_units_(compute_units) {}

  std::vector<Microbench> all() {
    launches();
    barriers();
    flags();
    flag_cost();
    tile_sizes();
    guarded_copies();
    beside();
    motions("local", TrafficPattern::local, 1);
    stored_tiles("local", TrafficPattern::local, 1);
    matrix();
    matrix_stores(TrafficPattern::one_pair, 2);
    for (int ranks = 2; ranks <= gpus_; ranks *= 2) matrix_stores(TrafficPattern::all_rotated, ranks);
    ragged();
    remote();
    matmuls();
    steps();
    staggered();
    staging("staging", DType::bf16);
    staging("fp8-staging", DType::fp8);
    passed();
    chains();
    powers();
    clocks();
    contention();
    cold();
    spread();
    arbitration();
    streams();
    busy_streams();
    caches();
    sizes();
    return std::move(cases_);
  }

 private:
  // A row without its way from time to value.
  static MicrobenchRow row(std::string group, std::string name, Parameters named,
                           MicrobenchMetric metric = MicrobenchMetric::device_time) {
    MicrobenchRow made;
    made.group = std::move(group);
    made.name = std::move(name);
    made.parameters = std::move(named);
    made.metric = metric;
    return made;
  }
  static MicrobenchRow per(MicrobenchRow row, std::string unit, double per_us) {
    row.unit = std::move(unit);
    row.per_us = per_us;
    return row;
  }
  static MicrobenchRow rate(MicrobenchRow row, double bytes) {
    row.unit = "GB/s";
    row.over_us = bytes * kGbPerSecond;
    return row;
  }
  void add(int gpus, std::vector<MicrobenchRow> rows, std::function<Schedule()> schedule,
           bool sustained = false) {
    if (gpus <= gpus_) cases_.push_back({gpus, sustained, 0, std::move(schedule), std::move(rows)});
  }
  // After `flush` bytes were written on every GPU.
  void add_flushed(int gpus, std::int64_t flush, std::vector<MicrobenchRow> rows,
                   std::function<Schedule()> schedule) {
    if (gpus > gpus_) return;
    cases_.push_back({gpus, false, static_cast<double>(flush), std::move(schedule), std::move(rows)});
  }

  // Those of `wanted` below the number of compute units, then all of them.
  std::vector<int> some_and_all(std::initializer_list<int> wanted) const {
    std::vector<int> counts;
    std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(counts),
                 [this](int count) { return count < compute_units_; });
    counts.push_back(compute_units_);
    return counts;
  }

  // Below and above what fills a link.
  static constexpr std::initializer_list<int> kAroundFull{4, 8, 10, 12, 14, 16, 20, 24, 32, 64};

  void launches();
  void barriers();
  void flags();
  void flag_cost();
  void tile_sizes();
  void guarded_copies();
  void guarded_copy(TrafficPattern traffic, std::int32_t m, std::int32_t n, int workgroups, int threads);
  void beside();
  void motions(const std::string& group, TrafficPattern traffic, int ranks);
  void stored_tiles(const std::string& group, TrafficPattern traffic, int ranks);
  void matrix();
  void matrix_stores(TrafficPattern traffic, int ranks);
  void ragged();
  void remote();
  void matmuls();
  void steps();
  void staggered();
  void staging(std::string_view group, DType dtype);
  void passed();
  void chains();
  void clocks();
  void powers();
  void gemm_clocks(DType dtype, bool sustained);
  void contention();
  void cold();
  MotionCase matrix_copies(int ranks, int workgroups, std::int32_t m, std::int32_t n) const;
  void spread();
  void arbitration();
  void streams();
  void busy_streams();
  void caches();
  void sizes();

  int gpus_;
  int compute_units_;
  std::vector<Microbench> cases_;
};

}  // namespace tritax
