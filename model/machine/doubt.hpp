// Times of a machine that are known to be wrong, as data of its file.
//
//   [[doubt]]
//   workload = "gemm-all-scatter"
//   pattern = "library"
//   m = [1, 1023]               # by the names of the workload's fields: names, or lowest and highest
//   note = "…"
//
// Nothing here changes a prediction. This folder knows no workload: fields are names to it, and who knows the
// workload compares them (sim/study/standing.hpp).
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
