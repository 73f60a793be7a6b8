// `tritax reproduce`: every published number recomputed, beside what was published and how far off the
// prediction is.
//
// A file of published numbers is TOML with one [[entry]] a number (docs/scenarios.md). An entry names a
// scenario, a metric with its unit and clock, what was published (a value, a range, or a bound) and where.
// Entries with equal scenarios share one simulation; simulations run in parallel and the rows come out in the
// order of the files.
//
// An entry whose id stands in `serves` of a parameter of the machine helped to set that parameter, and one
// that says so in `chosen` helped to choose knobs of its scenario. Both are marked as calibration and are no
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
  std::vector<Scenario> scenarios;   // one, or one a variant
  std::vector<Scenario> references;  // of speedup and time-difference, one a scenario; else empty
  Aggregate aggregate = Aggregate::mean;
  Metric metric = Metric::time;
  Clock clock = Clock::host;
  std::string unit;
  double unit_scale = 1;        // of one unit, in those of Prediction
  std::optional<double> value;  // in `unit`
  std::optional<double> low;    // spread of the measurement, or a bound where there is no value
  std::optional<double> high;
  std::string source;
  std::string confidence;
  std::string chosen;  // knobs of the scenario that were chosen with the number known, blank-separated
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
  std::optional<double> predicted;  // empty when the simulation failed, see `failure`
  // (predicted - published) / published, signed. Of a bound: 0 if it holds. Empty when there is no
  // prediction.
  std::optional<double> error;
  // Of a time-difference with one variant: likewise, of the whole time that the published difference implies.
  // Else empty.
  std::optional<double> error_of_time;
  bool within_published_range = false;  // low <= predicted <= high, where the source gives them
  bool calibration = false;             // it helped to set a parameter of the machine, or to choose knobs
  std::string source;
  std::string confidence;
  std::string chosen;   // the knobs, as in the entry
  std::string notes;    // of the entry: remarks of the source, mechanisms thought missing
  std::string failure;  // why there is no prediction
};

using ReproduceOptions = ParallelOptions;

// Throws UserError with file, line, key, value and what is allowed.
std::vector<PublishedEntry> parse_published(std::string_view toml, const std::string& origin);
std::vector<PublishedEntry> read_published(const std::string& path);

// The entries that come with Tritax (scenarios/published), files in alphabetical order.
std::vector<PublishedEntry> shipped_published();

// One row an entry, in the same order. A scenario that the machine or the simulator refuses leaves its rows
// without a prediction; it does not stop the others. When cancelled, rows whose simulations were left out are
// missing. Throws UserError for machines that do not exist or lack what a metric asks of, and for ids used
// twice.
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
