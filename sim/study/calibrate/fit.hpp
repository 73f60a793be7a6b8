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

// A measured row together with what it is.
struct Observation {
  std::size_t number = 0;  // in the table
  const Microbench* bench = nullptr;
  const MicrobenchRow* row = nullptr;
  double time_us = 0;
  double value = 0;
  const CalibrationWatch* watch = nullptr;  // may be null
};

// Parameters that get one and the same value, because the rows cannot tell them apart; usually one.
struct Unknown {
  std::vector<std::string> keys;
  double start = 0;    // in internal units, for a machine that has 0
  std::string remark;  // for people
  std::string needs;  // group of microbenchmarks without which other unknowns would pass for it; may be empty
  // A share s that refines the other unknowns and stands for s / (1 - s) of something. That number is fitted,
  // and its error counts: near 1, shares that are all but equal stand for very different numbers. It goes
  // before any other where the rows do not determine all.
  bool refines = false;
  // Small beside what is measured with it, so that it need only be told from nothing.
  bool rough = false;
};

struct FitGroup {
  std::vector<Unknown> unknowns;
  std::function<bool(const MicrobenchRow&, const Machine&)> uses;
  // Changes the machine that is simulated before the fit: lifts limits that would hide an unknown, gives
  // unknowns good values to start from. Only the unknowns are taken over from it. May be empty.
  std::function<void(Machine&, const std::vector<Observation>&)> prepare;
};

struct FittedUnknown {
  Unknown unknown;
  std::optional<double> value;     // in internal units; nothing if poorly determined
  std::vector<std::size_t> rows;   // table numbers of the rows that depend on it
  std::vector<double> row_errors;  // logarithm of simulated by measured, of these rows
  double standard_error = 0;       // relative; of a share that refines, of the number that it stands for
};

// What counts as poorly determined.
inline constexpr double kLargestStandardError = 0.2;

// Likewise, of a share that refines and of what may be rough: they count from two standard errors off
// nothing.
inline constexpr double kLargestRefiningError = 0.5;

// Standard error of a measured median, at which `tritax-gpu microbench` stops repeating.
inline constexpr double kMeasurementError = 0.005;

// 0 of no errors.
double root_mean_square(const std::vector<double>& errors);

// Fits the group, leaves the values in `machine` and returns one entry an unknown, in their order. An unknown
// that turns out to be poorly determined keeps its value, and the others are fitted again; so does one that
// refines, if rows are too few for all.
std::vector<FittedUnknown> fit_group(const FitGroup& group, const std::vector<Observation>& table,
                                     Machine& machine);

}  // namespace tritax
