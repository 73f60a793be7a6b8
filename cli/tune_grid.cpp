#include "cli/tune_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/tune_picks.hpp"
#include "cli/version.hpp"
#include "model/core/read_file.hpp"
#include "sim/study/grid_choice.hpp"

namespace tritax::cli {

namespace {

constexpr std::size_t kLargestModels = std::size_t{64} << 20;

// Picks the same option for every problem.
std::vector<std::size_t> always(const GridTable& grids, std::size_t option) {
  return std::vector<std::size_t>(grids.table.problems.size(), option);
}

std::vector<std::size_t> fastest_pattern(const GridTable& grids) {
  std::vector<std::size_t> picks;
  for (const std::vector<double>& times : grids.table.time_ns) {
    const auto first = times.begin();
    const auto end = first + static_cast<std::ptrdiff_t>(grids.patterns);
    picks.push_back(static_cast<std::size_t>(std::min_element(first, end) - first));
  }
  return picks;
}

}  // namespace

void tune_grids(const std::string& models, const std::string& file, const std::vector<Scenario>& scenarios,
                const Machine& machine, Outputs& outputs) {
  const std::string text = read_file(models, "the path of grid models (JSON)", kLargestModels);
  const GridModels read = GridModels::from_json(text, models);
  const GridTable grids = grid_table(scenarios, machine, read, models);
  std::vector<std::size_t> all(grids.table.problems.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto score = [&](const std::vector<std::size_t>& picks) {
    return score_picks(grids.table, all, picks);
  };
  const double nobody = std::nan("");
  const auto patterns = static_cast<double>(grids.patterns);
  Table picks = pick_table();
  add_pick(picks, "grid model", grids.choice_ns, 1, score(always(grids, grids.option(GridOption::chosen))));
  add_pick(picks, "its kernel, a workgroup per compute unit", nobody, 1,
           score(always(grids, grids.option(GridOption::all_units))));
  add_pick(picks, "all patterns at the file's knobs", nobody, patterns, score(fastest_pattern(grids)));
  std::vector<std::size_t> best;
  for (const std::size_t problem : all) best.push_back(grids.table.best(problem));
  add_pick(picks, "exhaustive", nobody, patterns + grids.grids_tried, score(best));
  add_pick(picks, fmt::format("always {}", grids.table.options.front()), nobody, 1, score(always(grids, 0)));
  outputs.print(fmt::format(
      "{} grid models of {}, fitted on {}, over {} problems on {}; {} more problems have no model\n\n",
      read.models.size(), read.workload, read.machine, all.size(), machine.title(), grids.unknown));
  outputs.print(picks);
  outputs.csv(picks);
  outputs.json({{"schema", "tritax.tune/1"},
                {"version", version()},
                {"file", file},
                {"models", models},
                {"machine", machine.title()},
                {"problems", all.size()},
                {"without_model", grids.unknown},
                {"selectors", json_of_table(picks)}});
}

}  // namespace tritax::cli
