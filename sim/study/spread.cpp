#include "sim/study/spread.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/schedule/operations.hpp"

namespace tritax {

namespace {

constexpr int kSeeds = 5;  // of which one run is known
// Operations of the further runs together: a second or two on one core.
constexpr std::uint64_t kCheapOperations = std::uint64_t{1} << 20;
constexpr double kNineOfTen = 1.645;  // of a normal distribution lie within so many standard deviations
constexpr double kWideSpread = 0.01;  // of the lowest time

}  // namespace

double Spread::low_ns() const {
  return times_ns.empty() ? 0 : *std::min_element(times_ns.begin(), times_ns.end());
}

double Spread::high_ns() const {
  return times_ns.empty() ? 0 : *std::max_element(times_ns.begin(), times_ns.end());
}

double Spread::relative() const {
  if (!known()) return 0;
  const auto count = static_cast<double>(times_ns.size());
  const double mean = std::accumulate(times_ns.begin(), times_ns.end(), 0.0) / count;
  double squares = 0;
  for (const double time : times_ns) squares += (time - mean) * (time - mean);
  return std::sqrt(squares / (count - 1)) / mean;
}

bool Spread::worth_saying() const { return known() && high_ns() > (1 + kWideSpread) * low_ns(); }

int cheap_seeds(std::uint64_t operations) {
  if (operations == 0) return kSeeds;
  return static_cast<int>(std::min<std::uint64_t>(kSeeds, 1 + kCheapOperations / operations));
}

Spread spread_of(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
                 double run_ns) {
  Spread spread;
  spread.first_seed = options.seed;
  spread.times_ns.resize(static_cast<std::size_t>(cheap_seeds(executed_operations(schedule))), run_ns);
  std::vector<char> ended_early(spread.times_ns.size(), 0);
  tbb::parallel_for(std::size_t{1}, spread.times_ns.size(), [&](std::size_t i) {
    SimulationOptions other = options;
    other.seed = options.seed + i;
    other.observer = nullptr;
    const SimulationResult result = simulate(schedule, machine, other);
    spread.times_ns[i] = result.makespan_ns;
    ended_early[i] = result.gave_up;
  });
  const bool stopped = std::find(ended_early.begin(), ended_early.end(), 1) != ended_early.end();
  if (stopped) spread.times_ns.resize(1);
  return spread;
}

double widened(double band, double spread) { return std::hypot(band, kNineOfTen * spread); }

}  // namespace tritax
