#include "backend_hip/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "backend_hip/gpu_error.hpp"
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

// Calls `visit(spec, part)` for every column of the values in the table; GPUs stand before them.
template <typename Visit>
void for_each_column(const Values& values, const Visit& visit) {
  for (std::size_t i = 0; i < values.specs().size(); ++i) {
    const Spec& spec = values.specs()[i];
    if (spec.counts_gpus) continue;
    for (std::size_t part = 0; part < spec.columns(); ++part) visit(i, part);
  }
}

// ",m,n,k,dtype"
std::string column_names(std::span<const Spec> specs) {
  std::string names;
  for_each_column(Values(specs), [&](std::size_t spec, std::size_t part) {
    names += fmt::format(",{}", specs[spec].column(part));
  });
  return names;
}

// ",8192,4608,36864,fp16"
std::string column_values(const Values& values) {
  std::string text;
  for_each_column(values, [&](std::size_t spec, std::size_t part) {
    text += ',';
    text += values.specs()[spec].columns() == 1
                ? text_of(values, spec)
                : fmt::format("{}", values.at(values.first_column(spec) + part));
  });
  return text;
}

std::string csv_header(const Workload& workload) {
  return fmt::format("id,workload,pattern,gpus{}{},{}", column_names(workload.fields),
                     column_names(workload.knobs), kMeasuredColumns);
}

std::string csv_row(const Scenario& scenario, const Values& knobs, const RunOptions& run,
                    const Measurement& measured) {
  const Problem& problem = scenario.problem;
  const auto times = [](const Spread& spread) {
    return fmt::format("{:.2f},{:.2f},{:.2f}", spread.median, spread.p10, spread.p90);
  };
  return fmt::format("{},{},{},{}{}{},{},{},{:.0f},{:.0f},{},{},{:.2e}", scenario.id, problem.workload->name,
                     scenario.pattern, problem.gpus(), column_values(problem.values), column_values(knobs),
                     measured.runs, run.warmup, run.executor.flush_bytes, run.executor.pace_gb_per_s,
                     times(measured.wall_us), times(measured.device_us), measured.relative_error);
}

// One table has the columns of one workload.
const Workload& only_workload(const std::vector<Scenario>& scenarios) {
  if (scenarios.empty()) {
    throw UserError(
        "no scenario to measure: those of vendors' libraries are measured by backend_hip/baselines");
  }
  const Workload& first = *scenarios.front().problem.workload;
  for (const Scenario& scenario : scenarios) {
    if (scenario.problem.workload == &first) continue;
    throw UserError(fmt::format(
        "{}scenarios of one measurement are of one workload, and this is {}, not {}; choose by --id",
        place_of(scenario), scenario.problem.workload->name, first.name));
  }
  return first;
}

// A table that grows while the work goes on, so that an interrupted run keeps its rows.
class GrowingTable {
 public:
  // An empty path: no table. Throws UserError when the file exists or cannot be written.
  GrowingTable(const std::string& path, const MeasureOptions& options, std::string_view columns)
      : path_(path) {
    if (path.empty()) return;
    if (std::filesystem::exists(path)) throw UserError(fmt::format("{}: exists already", path));
    out_.open(path);
    add(fmt::format("# {}\n# commit {}; command: {}\n{}", measurement_place(), options.commit,
                    options.command, columns));
  }

  bool wanted() const { return !path_.empty(); }

  void add(const std::string& line) {
    if (!wanted()) return;
    out_ << line << std::endl;
    if (!out_) throw UserError(fmt::format("{}: cannot be written", path_));
  }

 private:
  std::string path_;
  std::ofstream out_;
};

void add_ops(const Scenario& scenario, const Schedule& schedule, const Measurement& measured,
             double flush_bytes, GrowingTable& table) {
  if (!table.wanted()) return;
  for (const OpTimes& times : op_times(measured.stamped->timeline, schedule)) {
    table.add(op_table_row({scenario.id, scenario.pattern, scenario.problem.gpus(), times,
                            measured.device_us.median, measured.stamped->device_us, flush_bytes, ""}));
  }
}

// "iris_8192x4096x12288_128x256_fused-sequential-4.json": the id may hold slashes.
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
      throw;  // what was measured before is written
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
