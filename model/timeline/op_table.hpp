// Measured times of tile operations as a CSV file: one row for each scenario, number of GPUs and group of
// operations, written by `tritax measure --ops` and read by `tritax validate --ops`.
//
//   id,pattern,gpus          the scenario
//   kernel,operation,side,size   the group (OpGroup); side is local or remote, size "-" without a tile
//   count,median_us,p10_us,p90_us,sum_us   of the run with stamps (OpTimes)
//   device_us                median device time of the scenario without stamps
//   stamped_device_us        device time of the run with stamps: what stamping costs
//   flush_bytes              written on every GPU before each run; older tables do not say
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/timeline/op_times.hpp"

namespace tritax {

struct MeasuredOps {
  std::string id;
  std::string pattern;
  int gpus = 0;
  OpTimes times;
  double device_us = 0;
  double stamped_device_us = 0;
  std::optional<double> flush_bytes;  // if the table says it
  std::string where;                  // "file:line"; not written
};

struct MeasuredOpsFile {
  std::string origin;
  std::vector<std::string> remarks;
  std::vector<MeasuredOps> rows;  // at least one
};

// The line of column names, and one row; both without line end.
std::string op_table_header();
std::string op_table_row(const MeasuredOps& row);

// Throws UserError with file:line, column, value and what is allowed.
MeasuredOpsFile parse_op_table(std::string_view csv, const std::string& origin);
MeasuredOpsFile read_op_table(const std::string& path);

}  // namespace tritax
