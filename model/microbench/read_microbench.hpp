// Reading what `tritax-gpu microbench` and `tritax calibrate` wrote: one row a number, known by group, name
// and parameters (model/microbench/cases.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/microbench/cases.hpp"

namespace tritax {

inline constexpr std::string_view kMicrobenchColumns =
    "group,name,parameters,value,unit,time_us,time_p10_us,time_p90_us,runs";

// One row of a file, together with what it is.
struct MeasuredMicrobench {
  std::size_t bench = 0;  // index into `MicrobenchTable::benches`
  std::size_t row = 0;    // of its rows
  double value = 0;       // in the row's unit
  double time_us = 0;     // median
  double time_p10_us = 0;
  double time_p90_us = 0;
  int runs = 0;
};

struct MicrobenchTable {
  std::string origin;
  std::string place;  // first remark: date, GPUs, driver
  std::vector<Microbench> benches;
  std::vector<MeasuredMicrobench> rows;

  const MicrobenchRow& row(const MeasuredMicrobench& measured) const {
    return benches[measured.bench].rows[measured.row];
  }
};

// Reads microbenchmarks of a node with `gpus` GPUs of `compute_units` each. Throws UserError with file, line,
// column and value for missing columns, values that are no numbers, rows that are no microbenchmark of such a
// node, rows that appear twice, and a file without rows.
MicrobenchTable read_microbench(const std::string& path, int gpus, int compute_units);

// Several files of one kind of node, as if they were one; what two of them measured counts twice. Throws also
// when two have the very same measurement.
MicrobenchTable read_microbench(const std::vector<std::string>& paths, int gpus, int compute_units);

// Same, from text; `origin` is used in messages.
MicrobenchTable parse_microbench(std::string_view text, const std::string& origin, int gpus,
                                 int compute_units);

}  // namespace tritax
