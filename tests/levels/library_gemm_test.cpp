// The wave level beside the law that the simulator has, on the tiles that vendors' GEMMs of the published
// rows take. Nothing is fitted to anything.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/core/error.hpp"
#include "model/parts/levels/k_step_of_tile.hpp"
#include "model/parts/levels/schedule_levels.hpp"
#include "sim/study/reproduce.hpp"

namespace tritax {
namespace {

struct Ratios {
  double logs = 0;
  int count = 0;
  double least = INFINITY;
  MatmulTile worst;
  int refused = 0;

  void add(double ratio, const MatmulTile& tile) {
    logs += std::log(ratio);
    if (ratio < least) worst = tile;
    least = std::min(least, ratio);
    ++count;
  }
  double mean() const { return std::exp(logs / count); }
};

// The rows of `tritax reproduce` that time a GEMM of a library.
std::vector<Scenario> library_gemms() {
  std::vector<Scenario> scenarios;
  for (const PublishedEntry& entry : shipped_published()) {
    for (const Scenario& scenario : entry.scenarios) {
      if (scenario.problem.workload->name == "library-gemm") scenarios.push_back(scenario);
    }
  }
  return scenarios;
}

void print_ratios(std::string_view level, const std::map<std::string, Ratios>& by_machine) {
  for (const auto& [name, own] : by_machine) {
    fmt::print("{:8} {:3} tiles, {:2} without levels: law / {} level {:.4f}, least {:.4f} of {}x{} by {}\n",
               name, own.count, own.refused, level, own.mean(), own.least, own.worst.m, own.worst.n,
               own.worst.waves);
  }
}

TEST(LibraryGemms, OfTheLevelsTakeWhatTheTunedLawSays) {
  std::map<std::string, Ratios> waves, instructions, ahead;
  for (const Scenario& scenario : library_gemms()) {
    const Machine machine = find_machine_of(scenario);
    for (const KernelLevels& kernel : levels_of(build_scenario(scenario, machine), machine)) {
      for (const std::string& name : {machine.gpu.name, std::string("all")}) {
        if (!kernel.levels) {
          ++waves[name].refused;
          continue;
        }
        const KernelCosts profile = costs(machine, kernel.profile);
        const double law = tile_cost(machine.gpu, profile, *kernel.levels).clk;
        waves[name].add(law / wave_cost(machine.gpu, profile, *kernel.levels).clk, kernel.tile);
        const KStep step = k_step_of(machine.gpu, *kernel.levels);
        instructions[name].add(law / StepBoard(step).cycles(listed_order(step)), kernel.tile);
        KStepOptions options;
        options.reads_ahead = true;
        const KStep next = k_step_of(machine.gpu, *kernel.levels, options);
        ahead[name].add(law / StepBoard(next).cycles(listed_order(next)), kernel.tile);
      }
    }
  }
  print_ratios("wave", waves);
  print_ratios("instruction", instructions);
  print_ratios("instruction, reads ahead", ahead);
  const Ratios& all = waves["all"];
  ASSERT_GT(all.count, 50);
  // A wave level that is below its law has lost work on the way.
  EXPECT_LE(all.mean(), 1 + 1e-9);
  EXPECT_GE(all.mean(), 0.95);  // what ML-Triton reaches of expert kernels (arXiv:2503.14985)
}

}  // namespace
}  // namespace tritax
