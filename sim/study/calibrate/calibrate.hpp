// Calibration: machine parameters from microbenchmarks.
//
// The microbenchmarks are schedules (model/microbench/cases.hpp); they are simulated on the machine, and the
// parameters are moved until the simulated times fit the measured ones. Parameters come in small groups, each
// fitted to the rows that depend on it, in a fixed order (fit_groups.hpp): damped Gauss-Newton on logarithms
// of parameters and times, so that every row counts by its relative error. Clocks and flag latencies follow
// from their rows by arithmetic (direct.cpp). Nothing but microbenchmarks is used, and equal input gives
// equal output.
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
  double old_value = 0;  // in `unit`; 0 also if the base does not have it
  double value = 0;      // in `unit`; the old one if poorly determined
  bool determined = false;
  int rows = 0;               // that depend on it
  double residual = 0;        // relative, root mean square over these rows
  double standard_error = 0;  // relative; infinite if no row depends on it
  std::string remark;         // what to know about it; may be empty
};

// A row of the file and what the calibrated machine says of it.
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
  // fitted or not (fills_links): how good the fit is. No band of predictions comes from it.
  double residual = 0;
};

struct CalibrateOptions {
  const std::atomic<bool>* stop = nullptr;  // when it becomes true, CalibrationStopped is thrown
  std::function<void(std::uint64_t simulations)>
      simulated;  // so many until now; from any thread, may be empty
};

// What was fitted until then is of no use: later groups of parameters correct what earlier ones rely on.
class CalibrationStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "the calibration was stopped"; }
};

// `base` gives everything that is not fitted. The result has the name `name`. Throws UserError when the
// measurements lead to a machine that contradicts itself, or do not fit the base (a dtype that it lacks).
Calibration calibrate(const Machine& base, const MicrobenchTable& table, const std::string& name,
                      const CalibrateOptions& options = {});

}  // namespace tritax
