// The random part of a predicted time.
//
// The shares that transfers get of a full link or memory are drawn from a seed
// (model/cost/service_weights.hpp), so one run is one draw. The same run with other seeds shows the spread:
//
//   s = standard deviation of the times over the seeds / their mean
//
// A band b that holds nine of ten predictions, measured with one draw each, becomes sqrt(b² + (1.645 s)²) for
// a run with another draw: errors of the model and of the draw are independent, and nine of ten values of a
// normal distribution lie within 1.645 s. With b = 7.9 % and times of 226, 240, 265, 231 and 228 us, s is
// 6.7 % and the band 13.6 %.
#pragma once

#include <cstdint>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/simulate.hpp"

namespace tritax {

struct Spread {
  std::uint64_t first_seed = 1;
  std::vector<double> times_ns;  // of first_seed, first_seed + 1, …; one or none: unknown

  bool known() const { return times_ns.size() > 1; }
  std::uint64_t last_seed() const { return first_seed + times_ns.size() - 1; }
  double low_ns() const;      // 0 without times
  double high_ns() const;     // 0 without times
  double relative() const;    // s; 0 if unknown
  bool worth_saying() const;  // whether the times differ by more than noise to a reader
};

// Number of seeds for which a run of `operations` operations (model/schedule/operations.hpp) is cheap: up to
// 5, or 1 if even two are not.
int cheap_seeds(std::uint64_t operations);

// Times of the schedule with options.seed and the next seeds, as many as are cheap, side by side. `run_ns` is
// the known time with options.seed. If options.stop ends a run, the spread is unknown.
Spread spread_of(const Schedule& schedule, const Machine& machine, const SimulationOptions& options,
                 double run_ns);

// A band of nine of ten predictions, widened by a spread.
double widened(double band, double spread);

}  // namespace tritax
