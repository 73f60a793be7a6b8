#include "backend_hip/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "backend_hip/gpu_error.hpp"
#include "backend_hip/table.hpp"
#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"
#include "model/timeline/op_table.hpp"

namespace tritax::gpu {

namespace {

constexpr std::string_view kMeasuredColumns =
    "runs,warmup_runs,flush_bytes,pace_gb_per_s,wall_us,wall_p10_us,wall_p90_us,device_us,device_p10_us,"
    "device_p90_us,"
    "relative_error";

std::string csv_header(const Workload& workload) {
  return fmt::format("id,workload,pattern,gpus{}{},{}", column_names(workload.fields),
                     column_names(workload.knobs), kMeasuredColumns);
}

std::string csv_row(const Scenario& scenario, const Values& knobs, const RunOptions& run,
                    const Measurement& measured) {
  const Problem& problem = scenario.problem;
  return fmt::format("{},{},{},{}{}{},{},{},{:.0f},{:.0f},{},{},{:.2e}", scenario.id, problem.workload->name,
                     scenario.pattern, problem.gpus(), column_values(problem.values), column_values(knobs),
                     measured.runs, run.warmup, run.executor.flush_bytes, run.executor.pace_gb_per_s,
                     spread_text(measured.wall_us), spread_text(measured.device_us), measured.relative_error);
}

void add_ops(const Scenario& scenario, const Schedule& schedule, const Measurement& measured,
             double flush_bytes, GrowingTable& table) {
  if (!table.wanted()) return;
  for (const OpTimes& times : op_times(measured.stamped->timeline, schedule)) {
    table.add(op_table_row({scenario.id, scenario.pattern, scenario.problem.gpus(), times,
                            measured.device_us.median, measured.stamped->device_us, flush_bytes, ""}));
  }
}

// "iris_8192x4096x12288_128x256_fused-sequential-4.json"; the id may contain slashes.
std::string timeline_path(const std::string& folder, const Scenario& scenario) {
  std::string name = fmt::format("{}-{}.json", scenario.id, scenario.problem.gpus());
  std::replace(name.begin(), name.end(), '/', '_');
  return (std::filesystem::path(folder) / name).string();
}

void make_folder(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder)) {
    throw UserError(fmt::format("{}: is no folder and cannot be made one", folder));
  }
}

}  // namespace

bool measure_scenarios(const MeasureOptions& options, const RunOptions& run) {
  const std::vector<Scenario> scenarios = select_scenarios(options.selection);
  const Workload& workload = only_workload(scenarios);
  if (list_gpus().empty()) throw UserError("no GPU: the runtime finds no device on this machine");
  GrowingTable rows(options.output, options, csv_header(workload));
  GrowingTable ops(options.ops, options, op_table_header());
  make_folder(options.timelines);
  std::map<std::string, Machine> machines;
  bool all_right = true;
  std::size_t ran = 0;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Scenario& scenario = scenarios[i];
    fmt::print("[{}/{}] {} on {} GPUs\n", i + 1, scenarios.size(), scenario.id, scenario.problem.gpus());
    std::fflush(stdout);
    if (machines.count(scenario.machine) == 0) machines[scenario.machine] = find_machine(scenario.machine);
    const Machine& machine = machines.at(scenario.machine);
    RunOptions fresh = run;
    fresh.check = true;
    fresh.seed = run.seed + i;
    fresh.stamps = ops.wanted() || !options.timelines.empty();
    std::optional<Schedule> schedule;
    Measurement measured;
    try {
      schedule = build_scenario(scenario, machine);
      measured = measure(*schedule, fresh);
    } catch (const GpuRuntimeError&) {
      throw;  // earlier measurements are already written
    } catch (const UserError& error) {
      fmt::print("  not measured: {}\n", error.what());
      continue;
    }
    ++ran;
    all_right = all_right && measured.right;
    if (!measured.right) continue;
    rows.add(csv_row(scenario, resolved_knobs(scenario, machine), run, measured));
    add_ops(scenario, *schedule, measured, run.executor.flush_bytes, ops);
    if (!options.timelines.empty()) {
      write_timeline(*schedule, *measured.stamped, timeline_path(options.timelines, scenario));
    }
  }
  if (ran == 0)
    throw UserError(fmt::format("none of {} scenarios could be measured, see above", scenarios.size()));
  return all_right;
}

}  // namespace tritax::gpu
