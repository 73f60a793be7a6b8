#include "sim/study/grid_choice.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "model/core/error.hpp"
#include "sim/simulate.hpp"
#include "sim/study/pattern_choice.hpp"

namespace tritax {

namespace {

struct GridsOfProblem {
  std::vector<double> time_ns;  // of options that are no patterns
  std::size_t tried = 0;
  double choice_ns = 0;
};

double time_with_knobs(const Pattern& pattern, const Problem& problem, const Machine& machine,
                       const Values& knobs) {
  try {
    return simulate(build_schedule(pattern, problem, machine, knobs), machine).makespan_ns;
  } catch (const UserError&) {  // this grid is impossible
    return kNever;
  }
}

// Grids except the chosen one and the grid of all units.
std::set<std::int64_t> other_grids(std::int64_t units, std::int64_t tiles, std::int64_t chosen) {
  constexpr std::array<std::int64_t, 7> kPartsOfTile{1, 2, 3, 4, 6, 8, 16};
  std::set<std::int64_t> grids;
  for (std::int64_t eighths = 1; eighths < 8; ++eighths)
    grids.insert(std::max<std::int64_t>(1, units * eighths / 8));
  for (const std::int64_t parts : kPartsOfTile) {
    if (tiles * parts <= units) grids.insert(tiles * parts);
  }
  grids.erase(units);
  grids.erase(chosen);
  return grids;
}

// Nothing if no model knows the problem.
std::optional<GridsOfProblem> tried_grids(const Scenario& scenario, const Machine& machine,
                                          const GridModels& models, const std::string& origin) {
  const Problem& problem = scenario.problem;
  const auto begin = std::chrono::steady_clock::now();
  const Choices choices = choices_of(problem, machine, scenario.knobs);
  const std::vector<GridPick> picks = grid_picks(models, origin, choices);
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  if (picks.empty()) return std::nullopt;
  const Proposal& chosen = picks.front().proposal;
  const Pattern& pattern = *choices.patterns[chosen.pattern].pattern;
  const std::optional<GridShares> shares =
      grid_shares_of(build_schedule(pattern, problem, machine, chosen.knobs));
  TRITAX_ASSERT(shares.has_value(), "a grid model has picked what shares nothing out");
  const std::int64_t units = machine.gpu.cu_count();
  const auto with_grid = [&](std::int64_t grid) {
    Values knobs = chosen.knobs;
    knobs.assume(kGridKnob, grid);
    return time_with_knobs(pattern, problem, machine, knobs);
  };
  GridsOfProblem found;
  found.choice_ns = taken.count();
  const double chosen_ns = with_grid(chosen.knobs[kGridKnob]);
  const double units_ns = chosen.knobs[kGridKnob] == units ? chosen_ns : with_grid(units);
  double others_ns = kNever;
  const std::set<std::int64_t> others = other_grids(units, shares->tiles, chosen.knobs[kGridKnob]);
  for (const std::int64_t grid : others) others_ns = std::min(others_ns, with_grid(grid));
  found.time_ns = {chosen_ns, units_ns, others_ns};
  found.tried = others.size() + 2;
  return found;
}

}  // namespace

GridTable grid_table(const std::vector<Scenario>& scenarios, const Machine& machine, const GridModels& models,
                     const std::string& origin) {
  const PatternTable patterns = pattern_table(scenarios, machine);
  std::vector<std::optional<GridsOfProblem>> grids(patterns.scenarios.size());
  tbb::parallel_for(std::size_t{0}, grids.size(), [&](std::size_t i) {
    grids[i] = tried_grids(patterns.scenarios[i], machine, models, origin);
  });
  GridTable result;
  result.patterns = patterns.table.options.size();
  result.table.options = patterns.table.options;
  result.table.options.insert(result.table.options.end(),
                              {"the grid that is chosen", "a workgroup per compute unit", "other grids"});
  result.table.numbers = patterns.table.numbers;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    if (!grids[i]) {
      ++result.unknown;
      continue;
    }
    result.table.problems.push_back(patterns.table.problems[i]);
    std::vector<double> time_ns = patterns.table.time_ns[i];
    time_ns.insert(time_ns.end(), grids[i]->time_ns.begin(), grids[i]->time_ns.end());
    result.table.time_ns.push_back(std::move(time_ns));
    result.grids_tried += static_cast<double>(grids[i]->tried);
    result.choice_ns += grids[i]->choice_ns;
  }
  if (result.table.problems.empty()) {
    throw UserError(fmt::format("{}: no model has the dtype and the machine of these problems", origin));
  }
  const auto count = static_cast<double>(result.table.problems.size());
  result.grids_tried /= count;
  result.choice_ns /= count;
  return result;
}

}  // namespace tritax
