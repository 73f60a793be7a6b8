// Groups of parameters for the work of hosts around kernels and between them.
#include <algorithm>
#include <string>

#include "sim/study/calibrate/fit_groups.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kLaunches = 100;  // launches without a wait for each

// Host times `around` the kernels of a pattern, or with these kernels, and many launches.
FitGroup stream_group(const std::vector<Observation>& table, bool around, const Machine& machine) {
  FitGroup group;
  group.unknowns = {{{"host.launch_call_time"}, 3000, "", ""},
                    {{"host.launch_latency", "host.synchronize_time"},
                     3000,
                     "only the sum of launch_latency and synchronize_time is determined, split evenly",
                     ""}};
  if (!around) group.unknowns.push_back({{"host.kernel_gap"}, 1000, "", ""});
  const std::string step = around ? "around a step" : "step";
  // The extra time of two hosts over one is not a turn that each of many hosts takes.
  const bool all_of_node = std::any_of(table.begin(), table.end(), [&](const Observation& row) {
    return row.row->name == step && row.row->number("gpus") == machine.gpus_per_node;
  });
  if (machine.gpus_per_node > 1 && all_of_node) {
    group.unknowns.push_back({{"host.launch_turn_time"}, 1000, "", ""});
    group.unknowns.back().rough = true;
  }
  group.uses = [step](const MicrobenchRow& row, const Machine&) {
    const bool many = row.name == "stream" && row.number("kernels") == kLaunches;
    return row.group == "launch" && (row.name == step || many);
  };
  return group;
}

FitGroup graph_group(bool around) {
  FitGroup group;
  group.unknowns = {{{"host.graph_launch_call_time"}, 5000, "", ""}, {{"host.graph_node_gap"}, 1000, "", ""}};
  group.unknowns.front().rough = true;
  group.uses = [around](const MicrobenchRow& row, const Machine&) {
    if (!around) return row.group == "launch" && row.name == "graph";
    const bool many = row.name == "graph" && row.number("kernels") == kLaunches;
    return row.group == "launch" && (row.name == "around a graph step" || many);
  };
  return group;
}

FitGroup barrier_group() {
  FitGroup group;
  group.unknowns = {{{"host.barrier_time"}, 1000, "", ""}};
  group.uses = [](const MicrobenchRow& row, const Machine& machine) {
    return row.name == "host barrier" && row.number("ranks") <= machine.gpus_per_node;
  };
  return group;
}

}  // namespace

bool knows_host_times(const std::vector<Observation>& table) {
  return std::any_of(table.begin(), table.end(),
                     [](const Observation& row) { return row.row->metric == MicrobenchMetric::host_time; });
}

std::vector<FitGroup> host_groups(const std::vector<Observation>& table, const Machine& machine) {
  const bool around = knows_host_times(table);
  return {barrier_group(), stream_group(table, around, machine), graph_group(around)};
}

}  // namespace tritax
