#include "cli/run_roofline.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/operation_limit.hpp"
#include "cli/roofline_plot.hpp"
#include "cli/svg.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"
#include "model/core/with_place.hpp"
#include "sim/study/run_roofline.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

Table ceiling_table(const MachineCeilings& ceilings) {
  Table table{{{"ceiling", "ceiling of one GPU"}, {"rate", "rate"}, {"unit", ""}}, {}};
  for (const MachineCeilings::Peak& peak : ceilings.peaks) {
    table.add({fmt::format("matrix cores, {}", name_of(peak.dtype)), peak.gflop_per_s / 1e3,
               std::string("TFLOP/s")});
  }
  for (std::size_t level = 0; level < kMemoryLevels; ++level) {
    if (ceilings.gb_per_s[level] <= 0) continue;
    table.add({std::string(kMemoryLevelNames[level]), ceilings.gb_per_s[level], std::string("GB/s")});
  }
  return table;
}

Table point_table(const RunRoofline& roofline) {
  Table table{{{"operation", "operation"}, {"busy_us", "busy", "us"}, {"gflop", "flops", "GFLOP", 2}}, {}};
  for (std::size_t level = 0; level < kMemoryLevels; ++level) {
    if (roofline.ceilings.gb_per_s[level] <= 0) continue;
    const std::string name(kMemoryLevelNames[level]);
    table.columns.push_back({name + "_mb", name, "MB", 2});
  }
  table.columns.push_back({"tflop_per_s", "attained", "TFLOP/s"});
  table.columns.push_back({"bound", "bound by"});
  table.columns.push_back({"least_us", "at least", "us"});
  table.columns.push_back({"share_pct", "of the bound", "%"});
  for (const RooflinePoint& point : roofline.points) {
    std::vector<Cell> cells{point.name, point.busy_ns / 1e3, point.flops / 1e9};
    for (std::size_t level = 0; level < kMemoryLevels; ++level) {
      if (roofline.ceilings.gb_per_s[level] > 0) cells.emplace_back(point.bytes[level] / 1e6);
    }
    cells.emplace_back(point.gflop_per_s() / 1e3);
    cells.emplace_back(point.bound());
    cells.emplace_back(point.least_ns() / 1e3);
    cells.emplace_back(100 * point.share());
    table.add(std::move(cells));
  }
  return table;
}

ordered_json run_roofline_json(const RunInput& run_input, const RunRoofline& roofline) {
  ordered_json peaks = ordered_json::object(), bandwidths = ordered_json::object();
  for (const MachineCeilings::Peak& peak : roofline.ceilings.peaks) {
    peaks[std::string(name_of(peak.dtype))] = peak.gflop_per_s / 1e3;
  }
  for (std::size_t level = 0; level < kMemoryLevels; ++level) {
    const double rate = roofline.ceilings.gb_per_s[level];
    if (rate > 0) bandwidths[std::string(kMemoryLevelNames[level])] = rate;
  }
  ordered_json points = ordered_json::array();
  for (const RooflinePoint& point : roofline.points) {
    ordered_json levels = ordered_json::object();
    for (std::size_t level = 0; level < kMemoryLevels; ++level) {
      if (roofline.ceilings.gb_per_s[level] <= 0) continue;
      const double bytes = point.bytes[level];
      levels[std::string(kMemoryLevelNames[level])] = {
          {"bytes", bytes},
          {"intensity", bytes > 0 && point.flops > 0 ? ordered_json(point.flops / bytes) : ordered_json()},
          {"gb_per_s", point.busy_ns > 0 ? bytes / point.busy_ns : 0},
          {"least_us", point.memory_ns[level] / 1e3}};
    }
    points.push_back({{"operation", point.name},
                      {"busy_us", point.busy_ns / 1e3},
                      {"flops", point.flops},
                      {"tflop_per_s", point.gflop_per_s() / 1e3},
                      {"compute_least_us", point.compute_ns / 1e3},
                      {"levels", std::move(levels)},
                      {"bound", point.bound()},
                      {"share", point.share()}});
  }
  return {{"schema", "tritax.run-roofline/1"},
          {"version", version()},
          {"id", run_input.id},
          {"machine", run_input.machine.name},
          {"gpus", run_input.schedule.ranks},
          {"time_us", roofline.result.makespan_ns / 1e3},
          {"peak_tflop_per_s", std::move(peaks)},
          {"gb_per_s", std::move(bandwidths)},
          {"points", std::move(points)}};
}

}  // namespace

int show_run_roofline(const RunRooflineOptions& options, const OutputOptions& output) {
  Outputs outputs(output);
  std::optional<OutputFile> plot;
  if (!options.plot.empty()) {
    require_svg(options.plot);
    plot.emplace(options.plot, "--plot");
  }
  const RunInput run_input = load_run_input(single_source(options.run_input));
  with_place(run_input.place, [&] {
    SimulationOptions simulation;
    simulation.seed = static_cast<std::uint64_t>(options.seed.value_or(1));
    require_few_operations(run_input.schedule, 1, std::nullopt, "");
    const RunRoofline roofline = run_roofline(run_input.schedule, run_input.machine, simulation);
    const Table points = point_table(roofline);
    outputs.print(styled(run_input.title, Style::bold) + "\n\n");
    outputs.print(ceiling_table(roofline.ceilings));
    outputs.print("\n");
    outputs.print(points);
    outputs.print(wrapped(
        "Values are per GPU, the mean of all. Busy: time in which any operation of the kind runs or waits. "
        "Bound by: the ceiling under which its flops and bytes take longest."));
    outputs.csv(points);
    outputs.json(run_roofline_json(run_input, roofline));
    if (plot) {
      plot->commit(roofline_picture(roofline, fmt::format("Roofline of {}", run_input.id), run_input.title));
    }
  });
  return 0;
}

}  // namespace tritax::cli
