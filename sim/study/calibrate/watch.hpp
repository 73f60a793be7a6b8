// Watches a calibration: counts its simulations, and ends it between two of them.
#pragma once

#include <atomic>
#include <cstdint>

#include "sim/study/calibrate/calibrate.hpp"
#include "sim/study/calibrate/fit.hpp"

namespace tritax {

class CalibrationWatch {
 public:
  explicit CalibrationWatch(const CalibrateOptions& options) : options_(options) {}

  // Call it before each simulation, from any thread. Throws CalibrationStopped.
  void look() const {
    if (options_.stop != nullptr && options_.stop->load()) throw CalibrationStopped();
    const std::uint64_t count = count_.fetch_add(1) + 1;
    if (options_.simulated) options_.simulated(count);
  }

 private:
  const CalibrateOptions& options_;
  mutable std::atomic<std::uint64_t> count_{0};
};

// As the function of the same name in microbench_model.hpp, with the watch of `row`.
double simulated_time_us(const Schedule& schedule, const Observation& row, const Machine& machine);

}  // namespace tritax
