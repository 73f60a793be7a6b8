#include "sim/study/fit_grid_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/select/select_by_tree.hpp"
#include "sim/simulate.hpp"

namespace tritax {

namespace {

// The given knobs that the pattern uses, without its grid.
std::string option_without_grid(const Pattern& pattern, const Values& given) {
  PatternOption option;
  option.pattern = &pattern;
  option.knobs = Values(given.specs());
  for (std::size_t i = 0; i < given.specs().size(); ++i) {
    const Spec& spec = given.specs()[i];
    if (spec.name == kGridKnob || !pattern.uses(spec.name)) continue;
    for (std::size_t part = 0; part < spec.columns(); ++part) {
      const std::size_t column = given.first_column(i) + part;
      if (given.given_at(column)) option.knobs.give_at(column, given.at(column));
    }
  }
  return option.name();
}

// `scenario` has a pattern. Nothing if its schedule shares work in another way.
std::optional<GridSample> sample_of(const Scenario& scenario, const Machine& machine,
                                    const Schedule& schedule, double time_ns) {
  const std::optional<GridShares> shares = grid_shares_of(schedule);
  if (!shares || shares->grid > machine.gpu.cu_count()) return std::nullopt;
  return GridSample{std::string(scenario.problem.workload->name),
                    option_without_grid(pattern_of(scenario), scenario.knobs),
                    shares->dtype,
                    {shares->tiles, shares->iterations, shares->grid, time_ns}};
}

std::vector<std::int64_t> grids_to_try(const Machine& machine) {
  const std::int64_t units = machine.gpu.cu_count();
  std::set<std::int64_t> grids{units, std::max<std::int64_t>(1, units * 3 / 4)};
  for (std::int64_t grid = 1; grid < units; grid *= 2) grids.insert(grid);
  return {grids.begin(), grids.end()};
}

}  // namespace

GridSamples measured_grid_samples(const std::vector<MeasuredScenario>& rows, const Machine& machine) {
  GridSamples found;
  for (const MeasuredScenario& row : rows) {
    std::optional<GridSample> sample;
    if (!pattern_of(row.scenario).vendor) {
      with_place(row.row.where + ": ", [&] {
        sample = sample_of(row.scenario, machine, build_scenario(row.scenario, machine),
                           row.row.time(MeasuredClock::device).median_ns);
      });
    }
    if (sample) {
      found.samples.push_back(std::move(*sample));
    } else {
      ++found.left_out;
    }
  }
  return found;
}

GridSamples simulated_grid_samples(const std::vector<Scenario>& scenarios, const Machine& machine,
                                   const ParallelOptions& options) {
  GridSamples found;
  std::vector<Scenario> tried;
  for (const Scenario& scenario : scenarios) {
    const Pattern& pattern = pattern_of(scenario);
    if (!pattern.uses(kGridKnob)) {
      ++found.left_out;
    } else if (scenario.knobs.given(kGridKnob)) {
      tried.push_back(scenario);
    } else {
      for (const std::int64_t grid : grids_to_try(machine)) {
        tried.push_back(scenario);
        tried.back().knobs.give(kGridKnob, grid);
      }
    }
  }
  std::vector<std::optional<GridSample>> samples(tried.size());
  const std::vector<TaskOutcome> outcomes = in_parallel(tried.size(), options, [&](std::size_t i) {
    const Schedule schedule = build_scenario(tried[i], machine);
    if (!grid_shares_of(schedule)) return;
    samples[i] = sample_of(tried[i], machine, schedule, simulate(schedule, machine).kernels_ns);
  });
  for (std::size_t i = 0; i < tried.size(); ++i) {
    if (!outcomes[i].failure.empty()) throw UserError(outcomes[i].failure);
    if (samples[i]) {
      found.samples.push_back(std::move(*samples[i]));
    } else if (outcomes[i].done) {
      ++found.left_out;
    }
  }
  return found;
}

FittedGridModels fit_grid_models(const std::vector<GridSample>& samples, const Machine& machine) {
  std::map<std::pair<std::string, DType>, std::vector<GridRun>> kernels;
  FittedGridModels fitted;
  fitted.models.machine = machine.name;
  for (const GridSample& sample : samples) {
    if (fitted.models.workload.empty()) fitted.models.workload = sample.workload;
    if (sample.workload != fitted.models.workload) {
      throw UserError(fmt::format("workload: {} beside {}; grid models of a file have one workload",
                                  sample.workload, fitted.models.workload));
    }
    kernels[{sample.option, sample.dtype}].push_back(sample.run);
  }
  for (const auto& [kernel, runs] : kernels) {
    try {
      const GridFit fit = fit_grid_model(runs);
      fitted.models.models.push_back(
          {kernel.first, kernel.second, static_cast<std::int64_t>(runs.size()), fit});
    } catch (const UserError& error) {
      fitted.undecided.push_back(
          fmt::format("{} in {}: {}", kernel.first, name_of(kernel.second), error.what()));
    }
  }
  if (!fitted.models.models.empty()) return fitted;
  throw UserError(fitted.undecided.empty()
                      ? "no run shares all iterations evenly among resident workgroups, as Stream-K does"
                      : fitted.undecided.front());
}

}  // namespace tritax
