// Lists predicted times that are known to be wrong on a machine, as data of the machine file.
//
//   [[doubt]]
//   workload = "gemm-all-scatter"
//   pattern = "library"
//   m = [1, 1023]               # a field of the workload: names, or lowest and highest
//   note = "…"
//
// A doubt changes no prediction. This folder does not know workloads: a field is only a name here.
// sim/study/trust.hpp compares doubts with the fields of a workload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tritax {

// A field of a problem: one of some names, or a number from `low` to `high`.
struct FieldRange {
  std::string field;
  std::vector<std::string> names;  // empty: numbers
  std::int64_t low = 0;
  std::int64_t high = 0;
};

struct Doubt {
  std::string workload;
  std::string pattern;
  std::vector<FieldRange> ranges;
  std::string note;  // why; a sentence
};

}  // namespace tritax
