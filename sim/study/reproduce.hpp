// `tritax reproduce`: every published number recomputed, with the published number and the error of the
// prediction.
//
// A file of published numbers is TOML with one [[entry]] per number (docs/scenarios.md). An entry names a
// scenario, a metric with its unit and clock, the published number (a value, a range, or a bound) and its
// source. Entries with equal scenarios share one simulation; simulations run in parallel and the rows come
// out in the order of the files.
//
// An entry whose id stands in `serves` of a parameter of the machine helped to set that parameter, and an
// entry with `chosen` helped to choose knobs of its scenario. Both are marked as calibration and are no
// predictions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/study/in_parallel.hpp"
#include "sim/study/predict.hpp"

namespace tritax {

enum class Aggregate : std::uint8_t { mean, min, max };  // over the variants of an entry
inline constexpr std::array<std::string_view, 3> kAggregateNames{"mean", "min", "max"};

struct PublishedEntry {
  std::string id;
  std::string group;
  std::vector<Scenario> scenarios;   // one, or one per variant
  std::vector<Scenario> references;  // for speedup and time-difference: one per scenario; else empty
  Aggregate aggregate = Aggregate::mean;
  Metric metric = Metric::time;
  Clock clock = Clock::host;
  std::string unit;
  double unit_scale = 1;        // one `unit` in units of Prediction
  std::optional<double> value;  // in `unit`
  std::optional<double> low;    // spread of the measurement, or a bound if there is no value
  std::optional<double> high;
  std::string source;
  std::string confidence;
  std::string chosen;  // knobs of the scenario that were chosen with the number known, separated by blanks
  std::string notes;
  std::string where;  // "file:line"
};

// One line of the table. Numbers are in `unit`.
struct ReproducedRow {
  std::string id;
  std::string group;
  std::string metric;
  std::string unit;
  double published = 0;       // the value, else the middle of the range, else the bound
  std::optional<double> low;  // as published
  std::optional<double> high;
  bool bound = false;               // published as "at least" or "at most" only
  std::optional<double> predicted;  // empty if the simulation failed, see `failure`
  // (predicted - published) / published, signed. For a bound: 0 if it holds. Empty without a prediction.
  std::optional<double> error;
  // For a time-difference with one variant: the error of the whole time that the published difference
  // implies. Else empty.
  std::optional<double> error_of_time;
  bool within_published_range = false;  // low <= predicted <= high, if the source gives them
  bool calibration = false;             // helped to set a parameter of the machine, or to choose knobs
  std::string source;
  std::string confidence;
  std::string chosen;   // the knobs, as in the entry
  std::string notes;    // notes of the entry: remarks of the source, mechanisms thought missing
  std::string failure;  // why there is no prediction
};

using ReproduceOptions = ParallelOptions;

// Throws UserError with file, line, key, value and the allowed values.
std::vector<PublishedEntry> parse_published(std::string_view toml, const std::string& origin);

// The entries that come with Tritax (scenarios/published), files in alphabetical order.
std::vector<PublishedEntry> shipped_published();

// One row per entry, in the same order. If the machine or the simulator refuses a scenario, its rows have no
// prediction; the other rows are computed. If cancelled, rows whose simulations were left out are missing.
// Throws UserError for machines that do not exist or lack data that a metric needs, and for ids used twice.
std::vector<ReproducedRow> reproduce(const std::vector<PublishedEntry>& entries,
                                     const ReproduceOptions& options = {});

// Errors of the predictions of one group. Calibration rows, failed rows and bounds that hold do not count.
struct GroupSummary {
  std::string group;
  std::size_t predictions = 0;
  std::size_t calibration = 0;
  std::size_t failed = 0;
  double median_error = 0;  // of the absolute relative errors
  double worst_error = 0;
};
std::vector<GroupSummary> summarise(const std::vector<ReproducedRow>& rows);

}  // namespace tritax
