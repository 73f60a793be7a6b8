// Calibration: machine parameters from microbenchmarks.
//
// The microbenchmarks are schedules (model/microbench/cases.hpp). They are simulated on the machine, and the
// parameters are changed until the simulated times fit the measured times. Parameters form small groups, each
// fitted to the rows that depend on it, in a fixed order (fit_groups.hpp): damped Gauss-Newton on logarithms
// of parameters and times, so that every row counts by its relative error. Clocks and flag latencies follow
// from their rows by arithmetic (direct.cpp). Only microbenchmarks are used, and equal input gives equal
// output.
//
// A parameter that no row depends on, or whose relative standard error is above 20 %, is poorly determined
// and keeps its value; docs/calibrate.md has the exceptions.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/microbench/read_microbench.hpp"

namespace tritax {

struct CalibratedParameter {
  std::string key;
  std::string unit;
  double old_value = 0;  // in `unit`; 0 also if the base has no value
  double value = 0;      // in `unit`; the old value if poorly determined
  bool determined = false;
  int rows = 0;               // rows that depend on it
  double residual = 0;        // relative root mean square over these rows
  double standard_error = 0;  // relative; infinite if no row depends on it
  std::string remark;         // for the reader; may be empty
};

// A row of the file, and its time on the calibrated machine.
struct CalibratedRow {
  std::string group;
  std::string name;
  std::string parameters;
  double measured_us = 0;
  double simulated_us = 0;
  bool fitted = false;  // a parameter was fitted to it

  double error() const { return simulated_us / measured_us - 1; }  // relative
};

struct Calibration {
  Machine machine;  // complete, with provenance of every parameter
  std::vector<CalibratedParameter> parameters;
  std::vector<CalibratedRow> rows;  // all rows of the table, in its order
  // Root mean square relative error over all fitted rows and over all traffic between GPUs that fills links,
  // fitted or not (fills_links): the quality of the fit. No band of predictions uses it.
  double residual = 0;
};

struct CalibrateOptions {
  const std::atomic<bool>* stop = nullptr;  // once true, CalibrationStopped is thrown
  std::function<void(std::uint64_t simulations)>
      simulated;  // simulations so far; from any thread, may be empty
};

// Parameters fitted so far are useless: later groups correct values that earlier groups rely on.
class CalibrationStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "the calibration was stopped"; }
};

// `base` gives all parameters that are not fitted. The result has the name `name`. Throws UserError if the
// measurements lead to a machine that contradicts itself, or do not fit the base (a dtype that it lacks).
Calibration calibrate(const Machine& base, const MicrobenchTable& table, const std::string& name,
                      const CalibrateOptions& options = {});

}  // namespace tritax
