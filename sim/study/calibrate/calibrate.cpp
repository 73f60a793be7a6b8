#include "sim/study/calibrate/calibrate.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "model/core/error.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/machine/check_machine.hpp"
#include "model/machine/parameters.hpp"
#include "sim/study/calibrate/direct.hpp"
#include "sim/study/calibrate/fit_groups.hpp"
#include "sim/study/calibrate/microbench_model.hpp"
#include "sim/study/calibrate/power.hpp"
#include "sim/study/calibrate/watch.hpp"

namespace tritax {

namespace {

// No row shows these parameters, but users may expect them.
constexpr std::array<std::string_view, 1> kNeverSeen{"fabric.store_latency"};

double rounded(double value, int digits) { return std::stod(fmt::format("{:.{}g}", value, digits)); }

std::string_view usual_unit(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return "ns";
    case Dimension::rate:
      return "GB/s";
    case Dimension::data:
      return "B";
    case Dimension::cycles:
      return "clk";
    case Dimension::bytes_per_clk:
      return "B/clk";
    case Dimension::clock:
      return "GHz";
    case Dimension::share:
      return "share";
    case Dimension::power:
      return "W";
    case Dimension::energy_per_byte:
      return "pJ/B";
    default:
      return "";
  }
}

std::string_view table_of(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? "" : key.substr(0, dot);
}

// The entry of `key` in the machine; a new entry gets the place where a reader would put it.
Parameter& entry_of(Machine& machine, const std::string& key) {
  auto& all = machine.parameters;
  const ParameterSpec* spec = find_parameter_spec(key);
  auto place = all.begin();
  for (auto entry = all.begin(); entry != all.end(); ++entry) {
    if (entry->key == key) return *entry;
    if (table_of(entry->key) == table_of(key) && find_parameter_spec(entry->key) < spec) place = entry + 1;
  }
  Parameter made;
  made.key = key;
  made.unit = usual_unit(spec->dimension);
  return *all.insert(place, made);
}

// Writes values into machine files, and their quality into a report.
class Recorder {
 public:
  Recorder(Calibration& calibration, const Machine& base, std::string source)
      : calibration_(calibration), base_(base), source_(std::move(source)) {}

  void record(const FittedUnknown& found) {
    for (const std::string& key : found.unknown.keys) record(found, key);
    for (std::size_t i = 0; found.value && i < found.rows.size(); ++i) {
      errors_[found.rows[i]] = found.row_errors[i];
    }
  }

  // Removes the parameter as if it had never been recorded.
  void forget(const std::string& key) {
    const auto is_it = [&](const auto& parameter) { return parameter.key == key; };
    std::erase_if(calibration_.parameters, is_it);
    const auto old = std::find_if(base_.parameters.begin(), base_.parameters.end(), is_it);
    TRITAX_ASSERT(old != base_.parameters.end(), "only what every machine has is forgotten");
    entry_of(calibration_.machine, key) = *old;
    set_parameter_value(calibration_.machine, key, parameter_value(base_, key));
  }

  bool fitted(std::size_t row) const { return errors_.contains(row); }

 private:
  void record(const FittedUnknown& found, const std::string& key) {
    CalibratedParameter report;
    report.key = key;
    report.rows = static_cast<int>(found.rows.size());
    report.residual = root_mean_square(found.row_errors);
    report.standard_error = found.standard_error;
    report.determined = found.value.has_value();
    report.remark = found.unknown.remark;
    const auto is_it = [&](const auto& parameter) { return parameter.key == key; };
    const auto old = std::find_if(base_.parameters.begin(), base_.parameters.end(), is_it);
    const Dimension dimension = find_parameter_spec(key)->dimension;
    report.unit = old != base_.parameters.end() ? old->unit : usual_unit(dimension);
    report.old_value = report.value = old != base_.parameters.end() ? old->value : 0;
    Machine& machine = calibration_.machine;
    if (found.value) {
      constexpr int kDigits = 5;
      const double factor = unit_factor(dimension, report.unit);
      Parameter& entry = entry_of(machine, key);
      entry.value = report.value = rounded(*found.value / factor, kDigits);
      entry.source = source_ + (report.remark.empty() ? "" : "; " + report.remark);
      entry.how = Provenance::calibrated;
      entry.serves = "";
      entry.residual = std::min(rounded(report.residual, 3), 0.999);
      set_parameter_value(machine, key, entry.value * factor);
    }
    calibration_.parameters.push_back(std::move(report));
  }

  Calibration& calibration_;
  const Machine& base_;
  std::string source_;
  std::map<std::size_t, double> errors_;  // by row; the last fit counts
};

void simulate_rows(Calibration& calibration, const MicrobenchTable& table, const Recorder& recorder,
                   const CalibrationWatch& watch) {
  calibration.rows.resize(table.rows.size());
  tbb::parallel_for(std::size_t{0}, table.rows.size(), [&](std::size_t i) {
    const MeasuredMicrobench& measured = table.rows[i];
    const MicrobenchRow& row = table.row(measured);
    const Microbench& bench = table.benches[measured.bench];
    watch.look();
    calibration.rows[i] = {row.group,
                           row.name,
                           row.parameter_text(),
                           measured.time_us,
                           simulated_time_us(bench.schedule(), bench, row, calibration.machine),
                           recorder.fitted(i)};
  });
}

// Over all fitted rows, on the resulting machine, and over all rows that fill links: parameters fitted to
// some of these must hold for the others.
double residual_of(const Calibration& calibration, const MicrobenchTable& table) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < calibration.rows.size(); ++i) {
    const CalibratedRow& row = calibration.rows[i];
    if (row.fitted || fills_links(table.row(table.rows[i]))) errors.push_back(row.error());
  }
  return root_mean_square(errors);
}

bool is_load_clock(const FittedUnknown& found) {
  return found.value.has_value() && found.unknown.keys.front().ends_with(".load_clock");
}

// For a base with energies: a load clock that stands for the whole draw of a product excludes energies.
std::vector<FittedUnknown> no_energies() {
  std::vector<FittedUnknown> all;
  for (const char* key : {"gpu.operand_energy", "gpu.miss_energy"}) {
    FittedUnknown none{
        {{key}, 0, "the rows do not tell energies, load_clock stands for them", ""}, 0.0, {}, {}, 0};
    all.push_back(std::move(none));
  }
  return all;
}

}  // namespace

Calibration calibrate(const Machine& base, const MicrobenchTable& table, const std::string& name,
                      const CalibrateOptions& options) {
  const CalibrationWatch watch(options);
  std::vector<Observation> observations;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const MeasuredMicrobench& row = table.rows[i];
    observations.push_back({i, &table.benches[row.bench], &table.row(row), row.time_us, row.value, &watch});
  }
  Calibration calibration;
  calibration.machine = base;
  calibration.machine.name = name;
  const std::string source =
      fmt::format("tritax calibrate, {}", table.place.empty() ? table.origin : table.place);
  Recorder recorder(calibration, base, source);
  // Each group is recorded, and so rounded, before the next group relies on it.
  Machine& machine = calibration.machine;
  // Tables belong to another node: the library's times are measured here.
  machine.library_tables.clear();
  machine.collective_tables.clear();
  machine.attention_tables.clear();
  // Until the end no requests coalesce: the rows show the L2 rate that tiles in lock step get.
  machine.interpreter.l2_coalescing_ns = 0;
  if (coalesces(base.gpu, base.interpreter) && base.gpu.l2_lock_step_gb_per_s > 0) {
    machine.gpu.l2_gb_per_s = base.gpu.l2_lock_step_gb_per_s;
  }
  const auto record = [&](const std::vector<FittedUnknown>& found) {
    for (const FittedUnknown& unknown : found) recorder.record(unknown);
  };
  const std::vector<FittedUnknown> power = estimate_power(observations, machine);
  const std::vector<FittedUnknown> clocks = estimate_clocks(observations, !power.empty(), machine);
  record(clocks);
  record(power);
  const bool old_law = std::any_of(clocks.begin(), clocks.end(), is_load_clock);
  if (old_law && machine.gpu.knows_energies()) record(no_energies());
  record(estimate_spreads(observations, machine));
  FittedUnknown together;  // the L2's bandwidth
  const auto fit = [&](const std::vector<FitGroup>& groups) {
    for (const FitGroup& group : groups) {
      const std::vector<FittedUnknown> found = fit_group(group, observations, machine);
      record(found);
      if (found.front().unknown.keys.front() == "gpu.l2_bandwidth") together = found.front();
    }
  };
  fit(device_groups(machine));
  record(estimate_flag_latencies(observations, machine));
  record(estimate_chains(observations, machine));
  recorder.record(estimate_passed_ops(observations, machine));
  record(estimate_cold_caches(observations, machine));
  fit(host_groups(observations, machine));
  if (knows_host_times(observations)) recorder.record(estimate_kernel_gap(observations, machine));
  record(estimate_ragged_rows(observations, machine));
  if (coalesces(base.gpu, base.interpreter)) {
    together.unknown.keys = {"gpu.l2_lock_step_bandwidth"};
    recorder.record(together);
    recorder.forget("gpu.l2_bandwidth");
  }
  machine.interpreter.l2_coalescing_ns = base.interpreter.l2_coalescing_ns;
  for (const std::string_view key : kNeverSeen) {
    FittedUnknown unseen;
    unseen.unknown.keys = {std::string(key)};
    unseen.standard_error = std::numeric_limits<double>::infinity();
    recorder.record(unseen);
  }
  const auto contradictions = find_inconsistencies(machine);
  if (!contradictions.empty()) {
    throw UserError(fmt::format("{}: the measurements lead to a machine that contradicts itself: {} {}",
                                table.origin, contradictions.front().key, contradictions.front().problem));
  }
  simulate_rows(calibration, table, recorder, watch);
  calibration.residual = residual_of(calibration, table);
  return calibration;
}

}  // namespace tritax
