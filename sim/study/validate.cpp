#include "sim/study/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "model/core/error.hpp"
#include "model/core/quantile.hpp"
#include "model/cost/kernel_costs.hpp"
#include "sim/simulate.hpp"

namespace tritax {

namespace {

constexpr const char* kMachineOfRows = "h200-4";  // machine of rows without a scenario

std::size_t index_of(MeasuredClock clock) { return static_cast<std::size_t>(clock); }

// The properties of a scenario that no CSV column may contradict: all except the number of GPUs, which varies
// between the measurements of one file of scenarios.
void require_same_problem(const MeasuredRow& row, const Scenario& scenario) {
  const auto refuse = [&](std::string_view column, const auto& value, const auto& expected) {
    throw UserError(fmt::format("{}: {} = {} contradicts scenario '{}' of that id ({}), which has {}",
                                row.where, column, value, scenario.id, scenario.where, expected));
  };
  if (scenario.problem.workload != row.problem.workload) {
    refuse("id", row.id, fmt::format("another workload than {}", row.problem.workload->name));
  }
  if (row.pattern != scenario.pattern) refuse("pattern", row.pattern, scenario.pattern);
  const Values& measured = row.problem.values;
  const Values& expected = scenario.problem.values;
  for (std::size_t i = 0; i < measured.specs().size(); ++i) {
    const Spec& spec = measured.specs()[i];
    if (spec.counts_gpus || text_of(measured, i) == text_of(expected, i)) continue;
    refuse(spec.name, text_of(measured, i), text_of(expected, i));
  }
}

// Applies the row's properties to the scenario. Properties that neither states, because tables did not record
// them then, get their values at the time of the measurement.
void apply(const MeasuredRow& row, Scenario& scenario) {
  scenario.problem = row.problem;
  scenario.pattern = row.pattern;
  scenario.knobs = scenario.knobs.with(row.knobs);
  for (const Spec& knob : scenario.knobs.specs()) {
    const std::string column = knob.column(0);
    if (knob.value_if_column_missing && !scenario.knobs.given(column))
      scenario.knobs.give(column, *knob.value_if_column_missing);
  }
}

// The median run is the middle one of the measured runs, after the warm-up and half of the others. Time with
// busy matrix cores uses up the power window.
SimulationResult median_run(const MeasuredRow& row, const Schedule& schedule, const Machine& machine) {
  const SimulationOptions options = found_in_caches(row.flush_bytes);
  SimulationResult result = simulate(schedule, machine, options);
  double busy_ns = 0;
  for (const RankResult& rank : result.ranks) busy_ns = std::max(busy_ns, rank.matrix_busy_ns);
  const double loaded_ns =
      (static_cast<double>(row.warmup_runs) + static_cast<double>(row.repeats) / 2) * busy_ns;
  if (machine.gpu.power_window_ns <= 0 || loaded_ns <= machine.gpu.power_window_ns) return result;
  return simulate(schedule, sustained(machine), options);
}

ValidatedRow predicted_row(const MeasuredScenario& measured, const Machine& machine) {
  Schedule schedule = build_scenario(measured.scenario, machine);
  run_by_interpreter(schedule);  // as `tritax measure` does
  const SimulationResult result = median_run(measured.row, schedule, machine);
  ValidatedRow row;
  row.id = measured.row.id;
  row.pattern = measured.row.pattern;
  row.problem = measured.row.problem;
  row.knobs = resolved_knobs(measured.scenario, machine);
  row.machine = measured.scenario.machine;
  row.where = measured.row.where;
  row.file = measured.file;
  row.measured = measured.row.times;
  row.predicted_ns[index_of(MeasuredClock::wall)] = result.makespan_ns;
  double& device_ns = row.predicted_ns[index_of(MeasuredClock::device)];
  for (const RankResult& rank : result.ranks) device_ns = std::max(device_ns, rank.kernels_ns);
  row.set = set_of_place(row.where);
  row.gpu = machine.gpu.name;
  row.band = trust_of(row.problem, machine, shipped_comparisons(), row.set).own;
  return row;
}

std::map<std::string, Machine> machines_of(const std::vector<MeasuredScenario>& rows) {
  std::map<std::string, Machine> machines;
  for (const MeasuredScenario& row : rows) {
    if (machines.count(row.scenario.machine) > 0) continue;
    machines.emplace(row.scenario.machine, find_machine_of(row.scenario));
  }
  return machines;
}

}  // namespace

std::map<std::string, const Scenario*> scenarios_by_id(const std::vector<Scenario>& scenarios) {
  std::map<std::string, const Scenario*> by_id;
  for (const Scenario& scenario : scenarios) {
    const auto [place, fresh] = by_id.emplace(scenario.id, &scenario);
    if (!fresh) {
      throw UserError(fmt::format("{}: id \"{}\" is already used at {}; ids must differ", scenario.where,
                                  scenario.id, place->second->where));
    }
  }
  return by_id;
}

std::vector<MeasuredScenario> match_scenarios(const std::vector<MeasuredFile>& files,
                                              const std::vector<Scenario>& scenarios, bool require_scenario,
                                              const std::string& machine) {
  const std::map<std::string, const Scenario*> by_id = scenarios_by_id(scenarios);
  std::vector<MeasuredScenario> matched;
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (const MeasuredRow& row : files[file].rows) {
      const auto found = by_id.find(row.id);
      if (found == by_id.end() && require_scenario) continue;
      MeasuredScenario& one = matched.emplace_back();
      one.row = row;
      one.file = file;
      if (found != by_id.end()) {
        require_same_problem(row, *found->second);
        one.scenario = *found->second;
      } else {
        one.scenario = scenario_of(row.problem);
        one.scenario.id = row.id;
        one.scenario.machine = kMachineOfRows;
      }
      apply(row, one.scenario);
      if (!machine.empty()) one.scenario.machine = machine;
    }
  }
  return matched;
}

double ValidatedRow::measured_ns(MeasuredClock clock) const { return measured[index_of(clock)].median_ns; }
double ValidatedRow::predicted_on(MeasuredClock clock) const { return predicted_ns[index_of(clock)]; }
double ValidatedRow::error(MeasuredClock clock) const { return predicted_on(clock) / measured_ns(clock) - 1; }

std::optional<bool> ValidatedRow::in_band(MeasuredClock clock) const {
  if (!band.known()) return std::nullopt;
  return is_tie(measured_ns(clock), predicted_on(clock), band_on(clock));
}

std::vector<ValidatedRow> validate(const std::vector<MeasuredScenario>& rows,
                                   const ValidateOptions& options) {
  const std::map<std::string, Machine> machines = machines_of(rows);
  std::vector<ValidatedRow> predicted(rows.size());
  const std::vector<TaskOutcome> outcomes = in_parallel(rows.size(), options, [&](std::size_t i) {
    predicted[i] = predicted_row(rows[i], machines.at(rows[i].scenario.machine));
  });
  std::vector<ValidatedRow> validated;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!outcomes[i].failure.empty()) {
      throw UserError(
          fmt::format("{}: this row cannot be simulated: {}", rows[i].row.where, outcomes[i].failure));
    }
    if (outcomes[i].done) validated.push_back(std::move(predicted[i]));
  }
  return validated;
}

ErrorSummary summarise_errors(const std::vector<ValidatedRow>& rows, MeasuredClock clock,
                              const std::function<bool(const ValidatedRow&)>& counts) {
  std::vector<double> errors;
  std::vector<double> magnitudes;
  for (const ValidatedRow& row : rows) {
    if (!counts(row)) continue;
    errors.push_back(row.error(clock));
    magnitudes.push_back(std::abs(row.error(clock)));
  }
  ErrorSummary summary;
  summary.rows = errors.size();
  if (errors.empty()) return summary;
  summary.median_abs_error = quantile(magnitudes, 0.5);
  summary.p90_abs_error = quantile(magnitudes, 0.9);
  summary.median_error = quantile(errors, 0.5);
  return summary;
}

namespace {

// Patterns by `time_ns`, shortest first.
std::vector<std::string> order_of(const std::map<std::string, double>& time_ns) {
  std::vector<std::string> order;
  for (const auto& [pattern, time] : time_ns) order.push_back(pattern);
  std::stable_sort(order.begin(), order.end(),
                   [&](const std::string& a, const std::string& b) { return time_ns.at(a) < time_ns.at(b); });
  return order;
}

// By pattern: the shortest time on either side.
struct PatternTimes {
  std::map<std::string, double> predicted_ns;
  std::map<std::string, double> measured_ns;

  void add(const ValidatedRow& row, MeasuredClock clock) {
    const auto keep = [&](std::map<std::string, double>& times, double time) {
      const auto [place, fresh] = times.emplace(row.pattern, time);
      if (!fresh) place->second = std::min(place->second, time);
    };
    keep(predicted_ns, row.predicted_on(clock));
    keep(measured_ns, row.measured_ns(clock));
  }
};

}  // namespace

std::size_t Choice::pairs_in_order() const {
  const auto place = [&](const std::string& pattern) {
    return std::find(predicted_order.begin(), predicted_order.end(), pattern) - predicted_order.begin();
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < measured_order.size(); ++i) {
    for (std::size_t j = i + 1; j < measured_order.size(); ++j) {
      count += place(measured_order[i]) < place(measured_order[j]) ? 1 : 0;
    }
  }
  return count;
}

std::vector<Choice> choices_of(const std::vector<ValidatedRow>& rows, MeasuredClock clock) {
  using Key = std::tuple<std::size_t, std::string_view, std::string>;
  std::map<Key, std::size_t> index;
  std::vector<Choice> choices;
  std::vector<PatternTimes> times_of_choice;
  for (const ValidatedRow& row : rows) {
    const Problem& problem = row.problem;
    const auto [place, fresh] =
        index.emplace(Key{row.file, problem.workload->name, key_of(problem.values)}, choices.size());
    if (fresh) {
      choices.push_back({problem, 0, &row, &row, 0, {}, {}});
      times_of_choice.emplace_back();
    }
    Choice& choice = choices[place->second];
    ++choice.rows;
    times_of_choice[place->second].add(row, clock);
    if (row.predicted_on(clock) < choice.picked->predicted_on(clock)) choice.picked = &row;
    if (row.measured_ns(clock) < choice.best->measured_ns(clock)) choice.best = &row;
  }
  std::vector<Choice> real;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (times_of_choice[i].measured_ns.size() < 2) continue;
    choices[i].predicted_order = order_of(times_of_choice[i].predicted_ns);
    choices[i].measured_order = order_of(times_of_choice[i].measured_ns);
    choices[i].regret = choices[i].picked->measured_ns(clock) / choices[i].best->measured_ns(clock) - 1;
    real.push_back(choices[i]);
  }
  return real;
}

ValidationSummary summarise(const std::vector<ValidatedRow>& rows, MeasuredClock clock) {
  ValidationSummary summary;
  summary.errors = summarise_errors(rows, clock, [](const ValidatedRow&) { return true; });
  const std::vector<Choice> choices = choices_of(rows, clock);
  if (!choices.empty()) {
    double right = 0;
    double sum = 0;
    double worst = 0;
    double pairs = 0;
    double in_order = 0;
    for (const Choice& choice : choices) {
      pairs += static_cast<double>(choice.pairs());
      in_order += static_cast<double>(choice.pairs_in_order());
      right += choice.same_pattern() ? 1 : 0;
      sum += choice.regret;
      worst = std::max(worst, choice.regret);
    }
    const auto count = static_cast<double>(choices.size());
    summary.best_pattern_picked = right / count;
    summary.mean_regret = sum / count;
    summary.max_regret = worst;
    summary.pairs_in_order = in_order / pairs;
  }
  double covered = 0;
  double with_band = 0;
  for (const ValidatedRow& row : rows) {
    const std::optional<bool> in_band = row.in_band(clock);
    if (!in_band) continue;
    with_band += 1;
    covered += *in_band ? 1 : 0;
  }
  if (with_band > 0) summary.band_coverage = covered / with_band;
  return summary;
}

std::string sentences_of(const ValidationSummary& summary) {
  std::string text =
      fmt::format("{} rows: median |error| {:.1f} %, 90th percentile {:.1f} %\n", summary.errors.rows,
                  100 * summary.errors.median_abs_error, 100 * summary.errors.p90_abs_error);
  if (summary.best_pattern_picked) {
    text += fmt::format(
        "best pattern picked for {:.0f} % of the shapes; regret {:.1f} % on average, {:.1f} % at worst\n",
        100 * *summary.best_pattern_picked, 100 * *summary.mean_regret, 100 * *summary.max_regret);
    text += fmt::format("{:.0f} % of the pattern pairs of a shape are in the measured order\n",
                        100 * *summary.pairs_in_order);
  } else {
    text += "no shape was measured with two patterns, so there is no choice to judge\n";
  }
  return text + (summary.band_coverage
                     ? fmt::format("{:.0f} % of the measured times lie in the band of other sets\n",
                                   100 * *summary.band_coverage)
                     : std::string("no band: nothing comparable in other sets\n"));
}

const Fields<ValidationSummary>& validation_fields() {
  constexpr unsigned kData = shown::kJson | shown::kRow;
  const auto number = [](std::string_view name, std::string_view meaning, auto member) {
    return Field<ValidationSummary>{{.name = name, .meaning = meaning, .shows = kData, .nullable = true},
                                    member};
  };
  const auto error = [](std::string_view name, std::string_view meaning, double ErrorSummary::*member,
                        unsigned shows) {
    return Field<ValidationSummary>{
        {.name = name, .meaning = meaning, .shows = shows},
        [member](const ValidationSummary& summary) { return summary.errors.*member; }};
  };
  static const Fields<ValidationSummary> fields{
      {{.name = "rows",
        .type = FieldType::size,
        .meaning = "predictions beside measurements",
        .shows = kData},
       [](const ValidationSummary& summary) { return summary.errors.rows; }},
      error("median_abs_error", "half of the errors are at most this far from 0",
            &ErrorSummary::median_abs_error, kData),
      error("p90_abs_error", "nine of ten errors are at most this far from 0", &ErrorSummary::p90_abs_error,
            kData),
      error("median_error", "median with sign; below 0 the model is too fast", &ErrorSummary::median_error,
            shown::kRow),
      number("best_pattern_picked", "share of the shapes whose fastest pattern is picked; none: no choices",
             &ValidationSummary::best_pattern_picked),
      number("mean_regret", "mean extra time of the picked run", &ValidationSummary::mean_regret),
      number("max_regret", "largest extra time of a picked run", &ValidationSummary::max_regret),
      number("pairs_in_order", "share of the pairs of patterns of a shape that are in the measured order",
             &ValidationSummary::pairs_in_order),
      number("band_coverage", "share of the measured times in the band of other sets; none: no band is known",
             &ValidationSummary::band_coverage)};
  return fields;
}

}  // namespace tritax
