#include "sim/study/validate_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"
#include "model/core/quantile.hpp"
#include "model/cost/vendor_machine.hpp"
#include "sim/study/predict.hpp"
#include "sim/simulate.hpp"

namespace tritax {

namespace {

constexpr std::string_view kLibraryWriter = "backend_hip/baselines";
constexpr double kFlushedBytes =
    256e6;  // what both scripts write before a run unless they are told otherwise
constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;  // as in model/workload
constexpr std::int64_t kMaxGpus = 1024;

struct Shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::bf16;
};

Shape read_shape(const CsvRow& line) {
  return {line.integer("m", 1, kMaxSize), line.integer("n", 1, kMaxSize), line.integer("k", 1, kMaxSize),
          static_cast<DType>(line.choice("dtype", kDTypeNames))};
}

LibraryRow row_of(const CsvRow& line, LibraryForm form, Workload workload, std::string_view column) {
  LibraryRow row;
  row.form = form;
  row.scenario.workload = std::move(workload);
  row.measured_ns = 1e3 * line.positive(column, "a time in us");
  row.where = line.where();
  return row;
}

LibraryGemm gemm_of(const Shape& shape) {
  return {shape.m, shape.n, shape.k, shape.dtype, GemmCaller::loop, {}};
}

// Refuses rows that are damaged anywhere, also where nothing here depends on it and in rows of forms that are
// left out.
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
  if (line.has("repeats")) line.integer("repeats", 1, kMaxSize);
  if (line.has("relative_error")) line.number("relative_error", 0, kMostRelativeError);
  if (line.has("kernels")) line.text("kernels");
}

// A row of gemm_all_scatter.py.
std::optional<LibraryRow> read_program(const CsvRow& line) {
  constexpr std::array<std::string_view, 4> forms{"gemm", "gathered", "library", "stepwise"};
  constexpr std::array<std::string_view, 2> launches{"eager", "graph"};
  const std::string_view form = forms[line.choice("form", forms)];
  const bool graph = line.choice("launch", launches) == 1;
  const Shape shape = read_shape(line);
  const std::int64_t gpus = line.integer("gpus", 1, kMaxGpus);
  if (form == "gemm" && graph) {
    if (shape.n % gpus != 0) line.refuse("n", fmt::format("a multiple of the {} GPUs", gpus));
    const Shape own{shape.m, shape.n / gpus, shape.k, shape.dtype};
    LibraryRow row = row_of(line, LibraryForm::gemm_cold, gemm_of(own), "device_us");
    row.between_events = true;
    return row;
  }
  if (form != "stepwise") return std::nullopt;
  const GemmAllScatter workload{shape.m, shape.n, shape.k, shape.dtype, static_cast<int>(gpus)};
  check(workload, line.where());
  LibraryRow row = row_of(line, LibraryForm::stepwise, workload, "wall_us");
  row.scenario.pattern = patterns().front().name;
  row.scenario.knobs.host_barriers = false;
  return row;
}

// A row of library_microbench.py; its times are the same for all launches, but for those of a loop.
std::optional<LibraryRow> read_call(const CsvRow& line) {
  constexpr std::array<std::string_view, 2> calls{"gemm", "all_gather"};
  constexpr std::array<std::string_view, 2> launches{"eager", "graph"};
  constexpr std::array<std::string_view, 3> operands{"cold", "warm", "loop"};
  const bool graph = line.choice("launch", launches) == 1;
  const std::size_t state = line.choice("operands", operands);
  if (graph != (operands[state] == "loop")) return std::nullopt;
  if (calls[line.choice("what", calls)] == "gemm") {
    const auto form = static_cast<LibraryForm>(state);
    return row_of(line, form, gemm_of(read_shape(line)), "kernel_us");
  }
  constexpr std::int64_t cols = 256;
  const std::int64_t bytes = line.integer("bytes_per_rank", 2 * cols, 2 * cols * kMaxSize);
  if (bytes % (2 * cols) != 0) line.refuse("bytes_per_rank", fmt::format("a multiple of {}", 2 * cols));
  AllGather gather;
  gather.rows = bytes / (2 * cols);
  gather.cols = cols;
  gather.dtype = DType::fp16;
  gather.gpus = static_cast<int>(line.integer("gpus", 2, kMaxGpus));
  gather.library = true;
  return row_of(line, LibraryForm::all_gather, gather, "kernel_us");
}

double predict_ns(const LibraryRow& row, const Machine& machine) {
  if (row.form == LibraryForm::gemm_loop)
    return predict(row.scenario, machine, true).time_ns(Clock::busy_stream);
  SimulationOptions options;
  options.warm = row.form == LibraryForm::gemm_warm;
  if (!options.warm) options.written_before_bytes = kFlushedBytes;
  const Schedule schedule = build_scenario(row.scenario, machine);
  const SimulationResult result = simulate(schedule, machine, options);
  if (row.form == LibraryForm::stepwise) return result.makespan_ns;
  double slowest = 0;
  for (const RankResult& rank : result.ranks) slowest = std::max(slowest, rank.kernels_ns);
  // As in any stream: the graph starts after the gap of a node, the event behind it after that of a kernel.
  if (row.between_events) {
    return slowest + machine.host.graph_node_gap_ns + machine.host.kernel_gap_ns;
  }
  // A profiler adds up kernels; gaps between them are none of it.
  const auto kernels_of_rank = static_cast<double>(schedule.kernels.size()) / schedule.ranks;
  return slowest - (kernels_of_rank - 1) * vendor_machine(machine).host.kernel_gap_ns;
}

}  // namespace

LibraryFile parse_library(std::string_view csv, const std::string& origin) {
  LibraryFile file;
  file.origin = origin;
  UniqueRows once("form,what,launch,operands,gpus,m,n,k,dtype,bytes_per_rank,device_us,kernel_us,wall_us");
  file.remarks = read_csv(csv, origin, "launch,gpus,m,n,k,dtype", kLibraryWriter, [&](const CsvRow& line) {
    std::optional<LibraryRow> row = line.has("what") ? read_call(line) : read_program(line);
    check_times(line);
    once.add(line);
    if (row) file.rows.push_back(std::move(*row));
  });
  if (file.rows.empty()) {
    throw UserError(
        fmt::format("{}: no row has a counterpart; allowed: forms 'gemm' as a graph and 'stepwise' of "
                    "gemm_all_scatter.py, and all of library_microbench.py",
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
