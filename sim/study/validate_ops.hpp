// `tritax validate --ops`: times of tile operations in the simulation and on GPUs, by kind.
//
// `tritax measure --ops` stores the times of a stamped run. The same schedule is simulated, and the same code
// sums its timeline (model/timeline/op_times.hpp). A residual in one kind of operation names the wrong
// mechanism; an error of the whole run does not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "model/timeline/op_table.hpp"
#include "sim/study/validate.hpp"

namespace tritax {

struct OpResidual {
  Scenario scenario;
  MeasuredOps measured;
  OpTimes predicted;
  std::string machine;

  // predicted median / measured median - 1; empty if the measured time is zero.
  std::optional<double> error() const;
};

// Simulates every scenario and number of GPUs that the files name, in parallel; rows come out in their order.
// Scenarios are found by id; `machine` replaces their machines unless "". Throws UserError for ids without a
// scenario, for rows that contradict their scenario, and for operations that its schedule does not have.
std::vector<OpResidual> validate_ops(const std::vector<MeasuredOpsFile>& files,
                                     const std::vector<Scenario>& scenarios, const std::string& machine,
                                     const ValidateOptions& options = {});

// Sum of all groups of one kind and side. Medians are over operations, each at the median of its group.
struct OpKindResidual {
  OpKind kind = OpKind::barrier;
  bool remote = false;
  std::int64_t groups = 0;
  std::int64_t count = 0;
  double measured_median_us = 0;
  double predicted_median_us = 0;
  double measured_sum_us = 0;
  double predicted_sum_us = 0;
  std::optional<double> median_error;      // over the groups, signed
  std::optional<double> median_abs_error;  // over the groups
  std::optional<double> sum_error;         // predicted_sum / measured_sum - 1
};

// In the order of OpKind, local before remote.
std::vector<OpKindResidual> summarise_ops(const std::vector<OpResidual>& rows);

// Extra time of the stamped runs over runs without stamps: the median over the runs, as a share.
double stamping_cost(const std::vector<OpResidual>& rows);

}  // namespace tritax
