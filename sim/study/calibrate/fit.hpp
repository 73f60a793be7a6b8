// Fitting one group of parameters to the rows that depend on them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/microbench/read_microbench.hpp"

namespace tritax {

class CalibrationWatch;

// A measured row and its meaning.
struct Observation {
  std::size_t number = 0;  // in the table
  const Microbench* bench = nullptr;
  const MicrobenchRow* row = nullptr;
  double time_us = 0;
  double value = 0;
  const CalibrationWatch* watch = nullptr;  // may be null
};

// Parameters with one common value, because the rows cannot tell them apart; usually one parameter.
struct Unknown {
  std::vector<std::string> keys;
  double start = 0;    // in internal units, for a machine that has 0
  std::string remark;  // for the reader
  std::string needs;   // group of microbenchmarks that separates it from other unknowns; may be empty
  // The unknown is a share s that refines the other unknowns and stands for the number s / (1 - s). That
  // number is fitted, and its error counts: near 1, nearly equal shares stand for very different numbers. If
  // the rows do not determine all unknowns, this one is given up first.
  bool refines = false;
  // The unknown is small beside the measured time: it only has to differ from zero.
  bool rough = false;
};

struct FitGroup {
  std::vector<Unknown> unknowns;
  std::function<bool(const MicrobenchRow&, const Machine&)> uses;
  // Changes the simulated machine before the fit: lifts limits that would hide an unknown, gives unknowns
  // good start values. Only the unknowns are copied back. May be empty.
  std::function<void(Machine&, const std::vector<Observation>&)> prepare;
};

struct FittedUnknown {
  Unknown unknown;
  std::optional<double> value;     // in internal units; empty if poorly determined
  std::vector<std::size_t> rows;   // table numbers of the rows that depend on it
  std::vector<double> row_errors;  // logarithm of simulated / measured, of these rows
  double standard_error = 0;       // relative; for a share that refines, of the number that it stands for
};

// Above this error an unknown is poorly determined.
inline constexpr double kLargestStandardError = 0.2;

// The limit for a share that refines and for a rough unknown: two standard errors from zero.
inline constexpr double kLargestRefiningError = 0.5;

// Standard error of a measured median, at which `tritax-gpu microbench` stops repeating.
inline constexpr double kMeasurementError = 0.005;

// 0 without errors.
double root_mean_square(const std::vector<double>& errors);

// Fits the group, sets the values in `machine` and returns one entry per unknown, in their order. A poorly
// determined unknown keeps its value, and the others are fitted again. The same holds for an unknown that
// refines if there are too few rows for all.
std::vector<FittedUnknown> fit_group(const FitGroup& group, const std::vector<Observation>& table,
                                     Machine& machine);

}  // namespace tritax
