// How far a prediction can be trusted: the band around it, whether it parts two patterns, and whether
// anything like the problem was ever compared. All of it is data of the machine file
// (model/machine/compared.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct Standing {
  // Relative; two of three predictions are off by no more, and so is the ratio of the times of two patterns.
  // 0: unknown.
  double residual = 0;
  std::string source;                 // of the residual
  std::vector<std::string> cautions;  // sentences: what was never compared
};

// Throws UserError for a [[compared]] table with a field that its workload does not have.
Standing standing_of(const Problem& problem, const Machine& machine);

// Whether the band cannot part two times.
bool is_tie(double a_ns, double b_ns, double residual);

// For times in rising order the place of the first one, from 1 on, that the band cannot part from each:
// groups begin where it can.
std::vector<int> ranks_with_ties(const std::vector<double>& times_ns, double residual);

// What is known to be wrong with the time of a pattern; nullptr if nothing is.
const Doubt* doubt_of(const Problem& problem, std::string_view pattern, const Machine& machine);

// A comparison of one prediction: for the residuals and ranges of `compared_sets`.
struct Comparison {
  std::string machine;
  Problem problem;
  double error = 0;  // predicted / measured - 1
};

struct MachineComparisons {
  std::string machine;
  ComparedSet set;  // without a source
};

// One a machine and workload, in order of appearance: number of rows, residual, and what the fields of their
// problems range over, as far as they must be given, are names, or count GPUs.
std::vector<MachineComparisons> compared_sets(const std::vector<Comparison>& comparisons);

}  // namespace tritax
