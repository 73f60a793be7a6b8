// `tritax validate`: predictions against measurements of the same schedules on GPUs.
//
// `tritax measure` runs the schedules of the simulator and writes one CSV row for each. A row is simulated
// again with its pattern and knobs, and compared on the clock of its measurement:
//
//   wall    a common start of all ranks until every host program and its kernels are done, host barriers
//           included. Predicted: SimulationResult::makespan_ns.
//   device  first workgroup's begin to last workgroup's end on one rank, slowest rank. Predicted: the largest
//           RankResult::kernels_ns.
//
// The CSV says which schedule ran; a scenario file has the properties that the CSV lacks (machine, pipeline,
// waves, host barriers). Rows and scenarios are matched by id.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/fields.hpp"
#include "model/scenario/scenario.hpp"
#include "sim/study/in_parallel.hpp"
#include "sim/study/trust.hpp"

namespace tritax {

enum class MeasuredClock : std::uint8_t { wall, device };
inline constexpr std::array<std::string_view, 2> kMeasuredClockNames{"wall", "device"};

struct MeasuredTime {
  double median_ns = 0;
  double p10_ns = 0;
  double p90_ns = 0;
};

struct MeasuredRow {
  std::string id;
  std::string pattern;
  Problem problem;
  Values knobs;  // given: knobs with a column in the CSV
  std::int64_t repeats = 0;
  std::int64_t warmup_runs = 3;       // before the repeats; 3 is the default of `tritax measure`
  std::optional<double> flush_bytes;  // written on every GPU before each run; empty if the file does not say
  std::array<MeasuredTime, 2> times;  // by MeasuredClock
  std::string where;                  // "file:line"

  const MeasuredTime& time(MeasuredClock clock) const { return times[static_cast<std::size_t>(clock)]; }
};

struct MeasuredFile {
  std::string origin;
  std::vector<std::string> remarks;  // the "# " lines: date, GPU, driver, commit, command
  std::vector<MeasuredRow> rows;     // at least one
};

// Reads the output of `tritax measure`. Columns are found by name, in any order; unused columns are optional.
// Throws UserError with file:line, column, value and the allowed values.
MeasuredFile parse_measured(std::string_view csv, const std::string& origin);
MeasuredFile read_measured(const std::string& path);

// The measurements and scenarios that come with Tritax: scenarios/measured/*-shapes.csv and *.toml.
std::vector<MeasuredFile> shipped_measurements();
std::vector<Scenario> shipped_measured_scenarios();

// Relative to its norm: above this error of a result, the run computed a wrong result; the worst of fp8 is
// 0.03. Rows with a larger error are refused.
inline constexpr double kMostRelativeError = 0.1;

// Throws UserError if two scenarios have the same id.
std::map<std::string, const Scenario*> scenarios_by_id(const std::vector<Scenario>& scenarios);

// A row with the scenario that it measured.
struct MeasuredScenario {
  MeasuredRow row;
  Scenario scenario;
  std::size_t file = 0;  // index of the file
};

// Gives every row its scenario: the one of equal id, with the row's number of GPUs and knobs. With
// `require_scenario`, rows without a scenario are left out; otherwise they get a scenario of their columns
// alone, on `h200-4` and with default knobs. `machine`: used for all rows unless "". Throws UserError if a
// row contradicts the problem or the pattern of its scenario.
std::vector<MeasuredScenario> match_scenarios(const std::vector<MeasuredFile>& files,
                                              const std::vector<Scenario>& scenarios, bool require_scenario,
                                              const std::string& machine);

struct ValidatedRow {
  std::string id;
  std::string pattern;
  Problem problem;
  Values knobs;
  std::string machine;
  std::string where;
  std::size_t file = 0;
  std::string set;                       // set of comparisons (compared.hpp)
  std::string gpu;                       // of the machine
  std::array<MeasuredTime, 2> measured;  // by MeasuredClock
  std::array<double, 2> predicted_ns{};  // by MeasuredClock
  Band band;                             // from all sets except the row's own, so that the row can judge it

  double measured_ns(MeasuredClock clock) const;
  double predicted_on(MeasuredClock clock) const;
  // predicted / measured - 1.
  double error(MeasuredClock clock) const;
  double band_on(MeasuredClock clock) const { return band.at(predicted_on(clock)); }  // 0: unknown
  // Whether the measured median lies in the band of the prediction; empty without a band.
  std::optional<bool> in_band(MeasuredClock clock) const;
};

using ValidateOptions = ParallelOptions;

// Simulates every row, in parallel; rows come out in the given order, without cancelled rows. Throws
// UserError, with the row's place, for unknown machines and for rows that the machine refuses.
std::vector<ValidatedRow> validate(const std::vector<MeasuredScenario>& rows,
                                   const ValidateOptions& options = {});

// Errors over a set of rows. Quantiles by linear interpolation between neighbours.
struct ErrorSummary {
  std::size_t rows = 0;
  double median_abs_error = 0;
  double p90_abs_error = 0;
  double median_error = 0;  // signed: below 0, the model is too fast
};
ErrorSummary summarise_errors(const std::vector<ValidatedRow>& rows, MeasuredClock clock,
                              const std::function<bool(const ValidatedRow&)>& counts);

// The model's choice among the rows of one file with equal problems.
struct Choice {
  Problem problem;
  std::size_t rows = 0;
  const ValidatedRow* picked = nullptr;      // shortest prediction; points into the rows
  const ValidatedRow* best = nullptr;        // shortest measurement
  double regret = 0;                         // measured time of `picked` / measured time of `best` - 1
  std::vector<std::string> predicted_order;  // patterns by their shortest prediction
  std::vector<std::string> measured_order;   // patterns by their shortest measurement

  // Pairs of patterns; and pairs with the same order in prediction and measurement.
  std::size_t pairs() const { return measured_order.size() * (measured_order.size() - 1) / 2; }
  std::size_t pairs_in_order() const;
  bool same_pattern() const { return picked->pattern == best->pattern; }
};

// One choice per shape with at least two measured patterns, in the order of the rows.
std::vector<Choice> choices_of(const std::vector<ValidatedRow>& rows, MeasuredClock clock);

struct ValidationSummary {
  ErrorSummary errors;
  std::optional<double> best_pattern_picked;  // share of choices with the best pattern; empty: no choices
  std::optional<double> mean_regret;
  std::optional<double> max_regret;
  std::optional<double>
      pairs_in_order;                   // share of the pairs of patterns, over all choices; empty: no choices
  std::optional<double> band_coverage;  // share of the rows with a band whose band holds; empty: no bands
};
ValidationSummary summarise(const std::vector<ValidatedRow>& rows, MeasuredClock clock);

// The summary in sentences, a line each.
std::string sentences_of(const ValidationSummary& summary);

// How JSON and Python show a summary.
const Fields<ValidationSummary>& validation_fields();

}  // namespace tritax
