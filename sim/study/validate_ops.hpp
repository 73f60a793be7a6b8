// `tritax validate --ops`: how long tile operations take in the simulation and on GPUs, by kind.
//
// `tritax measure --ops` stores the times of a stamped run; the same schedule is simulated, and its timeline
// is added up by the same code (model/timeline/op_times.hpp). A residual in one kind names the mechanism that
// is wrong, where an error of the whole run does not.
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

  // predicted median / measured median - 1; empty when nothing was measured to take time.
  std::optional<double> error() const;
};

// Simulates every scenario and number of GPUs that the files name, in parallel; rows come out in their order.
// Scenarios are found by id; `machine` replaces theirs unless "". Throws UserError for ids that no scenario
// has, for rows that contradict their scenario, and for operations that its schedule does not have.
std::vector<OpResidual> validate_ops(const std::vector<MeasuredOpsFile>& files,
                                     const std::vector<Scenario>& scenarios, const std::string& machine,
                                     const ValidateOptions& options = {});

// All groups of one kind and side. Medians are over operations, taking each at its group's median.
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
  std::optional<double> median_abs_error;  // likewise
  std::optional<double> sum_error;         // predicted_sum / measured_sum - 1
};

// In the order of OpKind, local before remote.
std::vector<OpKindResidual> summarise_ops(const std::vector<OpResidual>& rows);

// How much longer the stamped runs took than those without stamps: the median over the runs, as a share.
double stamping_cost(const std::vector<OpResidual>& rows);

}  // namespace tritax
