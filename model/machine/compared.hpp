// What predictions for a machine have been compared with, as data of its file: how far off they were, for
// which problems, and which times are known to be doubtful.
//
//   [[compared]]
//   workload = "gemm-all-scatter"
//   count = 1710                # of predictions
//   residual = 0.038            # two of three predictions were off by no more
//   dtype = ["bf16", "fp16"]    # of the rows, by the names of the workload's fields: names, or lowest and
//   highest m = [16, 32768] source = "tritax validate …"
//
//   [[doubt]]
//   workload = "gemm-all-scatter"
//   pattern = "library"
//   m = [1, 1023]
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

struct ComparedSet {
  std::string workload;
  std::vector<FieldRange> ranges;
  std::int64_t count = 0;  // of predictions that were compared
  double residual = 0;     // relative; two of three predictions were off by no more
  std::string source;      // the command that says so
};

struct Doubt {
  std::string workload;
  std::string pattern;
  std::vector<FieldRange> ranges;
  std::string note;  // why; a sentence
};

}  // namespace tritax
