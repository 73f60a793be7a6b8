// The wave level beside the law that the simulator has, on the tiles that vendors' GEMMs of the published
// rows take. Nothing is fitted to anything.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/core/error.hpp"
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

TEST(LibraryGemms, OfTheWaveLevelTakeWhatTheTunedLawSays) {
  std::map<std::string, Ratios> by_machine;
  Ratios all;
  for (const Scenario& scenario : library_gemms()) {
    const Machine machine = find_machine_of(scenario);
    for (const KernelLevels& kernel : levels_of(build_scenario(scenario, machine), machine)) {
      Ratios& own = by_machine[machine.gpu.name];
      if (!kernel.levels) {
        ++own.refused;
        ++all.refused;
        continue;
      }
      const KernelCosts profile = costs(machine, kernel.profile);
      const double ratio = tile_cost(machine.gpu, profile, *kernel.levels).clk /
                           wave_cost(machine.gpu, profile, *kernel.levels).clk;
      own.add(ratio, kernel.tile);
      all.add(ratio, kernel.tile);
    }
  }
  by_machine["all"] = all;
  for (const auto& [name, own] : by_machine) {
    fmt::print("{:8} {:3} tiles, {:2} without levels: law / wave level {:.4f}, least {:.4f} of {}x{} by {}\n",
               name, own.count, own.refused, own.mean(), own.least, own.worst.m, own.worst.n,
               own.worst.waves);
  }
  ASSERT_GT(all.count, 50);
  // A wave level that is below its law has lost work on the way.
  EXPECT_LE(all.mean(), 1 + 1e-9);
  EXPECT_GE(all.mean(), 0.95);  // what ML-Triton reaches of expert kernels (arXiv:2503.14985)
}

}  // namespace
}  // namespace tritax
