// Tables of measurements: columns of a workload's values, and rows that survive an interruption of the run.
#pragma once

#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_hip/measure.hpp"
#include "backend_hip/report.hpp"
#include "model/scenario/scenario.hpp"

namespace tritax::gpu {

// ",m,n,k,dtype": without GPUs, which have a separate column.
std::string column_names(std::span<const Spec> specs);

// ",8192,4608,36864,fp16"
std::string column_values(const Values& values);

// "median,p10,p90"
std::string spread_text(const Spread& spread);

// The workload of all scenarios, whose columns the table has. Throws UserError when there are none or
// several.
const Workload& only_workload(const std::vector<Scenario>& scenarios);

// A table that grows during the work.
class GrowingTable {
 public:
  // An empty path: no table. Throws UserError when the file exists or cannot be written.
  GrowingTable(const std::string& path, const MeasureOptions& options, std::string_view columns);

  bool wanted() const { return !path_.empty(); }
  void add(const std::string& line);

 private:
  std::string path_;
  std::ofstream out_;
};

}  // namespace tritax::gpu
