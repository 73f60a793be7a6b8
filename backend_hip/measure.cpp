#include "backend_hip/measure.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"

namespace tritax::gpu {

namespace {

constexpr const char* kColumns =
    "id,pattern,gpus,m,n,k,dtype,tile_m,tile_n,tile_k,gemm_cus,comm_cus,group_m,peer_order,lock,launch,"
    "runs,flush_bytes,pace_gb_per_s,wall_us,wall_p10_us,wall_p90_us,device_us,device_p10_us,device_p90_us,"
    "relative_error";

std::string driver_version() {
  for (const char* path : {"/sys/module/nvidia/version", "/sys/module/amdgpu/version"}) {
    std::ifstream file(path);
    std::string version;
    if (file >> version) return version;
  }
  return "unknown";
}

std::string csv_row(const Scenario& scenario, const Knobs& knobs, const RunOptions& run,
                    const Measurement& measured) {
  const auto& workload = std::get<GemmAllScatter>(scenario.workload);
  const auto name = [](const auto& names, auto value) { return names[static_cast<std::size_t>(value)]; };
  const auto times = [](const Spread& spread) {
    return fmt::format("{:.2f},{:.2f},{:.2f}", spread.median, spread.p10, spread.p90);
  };
  const std::string what = fmt::format("{},{},{},{},{},{},{}", scenario.id, scenario.pattern, workload.gpus,
                                       workload.m, workload.n, workload.k, name_of(workload.dtype));
  const std::string how =
      fmt::format("{},{},{},{},{},{},{},{},{}", knobs.tile_m, knobs.tile_n, knobs.tile_k, knobs.gemm_cus,
                  knobs.comm_cus, knobs.group_m, name(kPeerOrderNames, knobs.peer_order),
                  name(kLockProtocolNames, knobs.lock), name(kLaunchModeNames, knobs.launch));
  return fmt::format("{},{},{},{:.0f},{:.0f},{},{},{:.2e}", what, how, measured.runs,
                     run.executor.flush_bytes, run.executor.pace_gb_per_s, times(measured.wall_us),
                     times(measured.device_us), measured.relative_error);
}

// The scenarios to run: GEMM + all-scatter by tile operations, once for every number of GPUs asked for.
std::vector<Scenario> select_scenarios(const MeasureOptions& options) {
  std::vector<Scenario> selected;
  for (const std::string& file : options.files) {
    for (Scenario scenario : read_scenarios(file)) {
      auto* workload = std::get_if<GemmAllScatter>(&scenario.workload);
      if (workload == nullptr || scenario.pattern.empty()) {
        throw UserError(fmt::format("{}: scenario '{}' is not a GEMM + all-scatter with a pattern",
                                    scenario.where, scenario.id));
      }
      if (scenario.pattern == "library") continue;
      if (!options.machine.empty()) scenario.machine = options.machine;
      std::vector<int> counts = options.gpus;
      if (counts.empty()) counts.push_back(workload->gpus);
      for (const int count : counts) {
        workload->gpus = count;
        selected.push_back(scenario);
      }
    }
  }
  return selected;
}

}  // namespace

std::string measurement_place() {
  const std::vector<GpuInfo> gpus = list_gpus();
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%d}, {} x {}, driver {}, {}", fmt::gmtime(now),
                     gpus.empty() ? "no GPU" : gpus[0].name, gpus.size(), driver_version(),
                     runtime_versions());
}

bool measure_scenarios(const MeasureOptions& options, const RunOptions& run) {
  const std::vector<Scenario> scenarios = select_scenarios(options);
  if (std::filesystem::exists(options.output))
    throw UserError(fmt::format("{}: exists already", options.output));
  std::ofstream out(options.output);
  out << "# " << measurement_place() << '\n'
      << "# commit " << options.commit << "; command: " << options.command << '\n'
      << kColumns << '\n';
  std::map<std::string, Machine> machines;
  bool all_right = true;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Scenario& scenario = scenarios[i];
    fmt::print("[{}/{}] {} on {} GPUs\n", i + 1, scenarios.size(), scenario.id, gpus_of(scenario));
    try {
      if (machines.count(scenario.machine) == 0) machines[scenario.machine] = find_machine(scenario.machine);
      const Machine& machine = machines.at(scenario.machine);
      RunOptions fresh = run;
      fresh.check = true;
      fresh.seed = run.seed + i;
      const Measurement measured = measure(build_scenario(scenario, machine), fresh);
      all_right = all_right && measured.right;
      if (measured.right)
        out << csv_row(scenario, resolved_knobs(scenario, machine), run, measured) << std::endl;
    } catch (const UserError& error) {
      fmt::print("  not measured: {}\n", error.what());
    }
    if (!out) throw UserError(fmt::format("{}: cannot be written", options.output));
    std::fflush(stdout);
  }
  return all_right;
}

}  // namespace tritax::gpu
