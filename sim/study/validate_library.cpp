#include "sim/study/validate_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"
#include "model/core/quantile.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"
#include "sim/study/predict.hpp"

namespace tritax {

namespace {

constexpr std::string_view kLibraryWriter = "a file of backend_hip/baselines";
constexpr double kFlushedBytes = 256e6;  // default of both scripts before each run
constexpr std::int64_t kMostRepeats = std::int64_t{1} << 20;

// Refuses damaged rows, also if the damage affects nothing here, and also in rows of forms that are left out.
void check_times(const CsvRow& line) {
  for (const std::string clock : {"device", "kernel", "wall"}) {
    const std::string low = clock + "_p10_us";
    const std::string high = clock + "_p90_us";
    if (line.has(clock + "_us")) line.positive(clock + "_us", "a time in us");
    if (!line.has(clock + "_us") || !line.has(low) || !line.has(high)) continue;
    const double p10 = line.positive(low, "a time in us");
    const double p90 = line.positive(high, "a time in us");
    line.number(clock + "_us", p10, p90);
  }
  if (line.has("repeats")) line.integer("repeats", 1, kMostRepeats);
  if (line.has("relative_error")) line.number("relative_error", 0, kMostRelativeError);
  if (line.has("kernels")) line.text("kernels");
}

// The row as read by the workload that knows its kind; nothing if no workload does.
std::optional<LibraryRow> read_row(const CsvRow& line) {
  for (const Workload* workload : workloads()) {
    auto call = workload->library_call == nullptr ? std::nullopt : workload->library_call(line);
    if (!call) continue;
    complete_problem(call->problem, line.where());
    LibraryRow row;
    row.form = call->form;
    row.between_events = call->between_events;
    row.measured_ns = 1e3 * line.positive(call->time_column, "a time in us");
    row.where = line.where();
    row.scenario = scenario_of(std::move(call->problem));
    row.scenario.pattern = call->pattern;
    if (call->knobs.columns() > 0) row.scenario.knobs = std::move(call->knobs);
    return row;
  }
  return std::nullopt;
}

double predict_ns(const LibraryRow& row, const Machine& machine) {
  if (row.form == LibraryForm::gemm_loop)
    return predict(row.scenario, machine, true).time_ns(Clock::busy_stream);
  SimulationOptions options;
  options.warm = row.form == LibraryForm::gemm_warm;
  if (!options.warm) options.written_before_bytes = kFlushedBytes;
  const Schedule schedule = build_scenario(row.scenario, machine);
  const SimulationResult result = simulate(schedule, machine, options);
  if (row.form == LibraryForm::stepwise || row.form == LibraryForm::program) return result.makespan_ns;
  double slowest = 0;
  for (const RankResult& rank : result.ranks) slowest = std::max(slowest, rank.kernels_ns);
  if (row.form == LibraryForm::kernel) return slowest + machine.host.kernel_gap_ns;
  // As in any stream: the graph starts after the gap of a node, the event behind it after the gap of a
  // kernel.
  if (row.between_events) {
    return slowest + machine.host.graph_node_gap_ns + machine.host.kernel_gap_ns;
  }
  // A profiler sums kernel times, without the gaps between them.
  const auto kernels_of_rank = static_cast<double>(schedule.kernels.size()) / schedule.ranks;
  return slowest - (kernels_of_rank - 1) * kernel_gap_ns(machine.host, costs(machine, KernelProfile::vendor));
}

}  // namespace

LibraryFile parse_library(std::string_view csv, const std::string& origin) {
  LibraryFile file;
  file.origin = origin;
  UniqueRows once(
      "workload,form,what,launch,operands,gpus,m,n,k,rows,cols,dtype,sharding,bytes_per_rank,device_us,"
      "kernel_us,wall_us");
  file.remarks = read_csv(csv, origin, "launch,gpus,dtype", kLibraryWriter, [&](const CsvRow& line) {
    std::optional<LibraryRow> row = read_row(line);
    check_times(line);
    once.add(line);
    if (row) file.rows.push_back(std::move(*row));
  });
  if (file.rows.empty()) {
    throw UserError(fmt::format(
        "{}: no row has a counterpart; allowed: forms 'gemm' as a graph and 'stepwise' of "
        "gemm_all_scatter.py, 'gemm' as a graph and 'library' of all_gather_gemm.py, 'library' of "
        "tritax-gpu sparse-library, and all of library_microbench.py",
        origin));
  }
  return file;
}

LibraryFile read_library(const std::string& path) {
  return parse_library(read_csv_file(path, kLibraryWriter), path);
}

std::vector<LibraryResidual> validate_library(const std::vector<LibraryFile>& files, const Machine& machine,
                                              const ValidateOptions& options) {
  std::vector<LibraryResidual> rows;
  for (const LibraryFile& file : files) {
    for (const LibraryRow& row : file.rows) rows.push_back({row, 0});
  }
  const std::vector<TaskOutcome> outcomes = in_parallel(
      rows.size(), options, [&](std::size_t i) { rows[i].predicted_ns = predict_ns(rows[i].row, machine); });
  std::vector<LibraryResidual> predicted;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!outcomes[i].failure.empty()) {
      throw UserError(
          fmt::format("{}: this row cannot be simulated: {}", rows[i].row.where, outcomes[i].failure));
    }
    if (outcomes[i].done) predicted.push_back(std::move(rows[i]));
  }
  return predicted;
}

ErrorSummary summarise_library(const std::vector<LibraryResidual>& rows, LibraryForm form) {
  std::vector<double> errors;
  std::vector<double> magnitudes;
  for (const LibraryResidual& row : rows) {
    if (row.row.form != form) continue;
    errors.push_back(row.error());
    magnitudes.push_back(std::abs(row.error()));
  }
  return {errors.size(), quantile(magnitudes, 0.5), quantile(magnitudes, 0.9), quantile(errors, 0.5)};
}

}  // namespace tritax
