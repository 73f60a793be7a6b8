// Two results of this program beside each other: what got slower, and by which part of its critical path.
//
// A result is what --json of `simulate`, `explain`, `advise` or `layer` wrote, on any machine and by any
// version. Its rows are runs, each with a time and the parts that add up to it. Rows of the same id are
// compared; where each file has one row, these two are, whatever they are called.
//
// For example 100 us of 60 compute and 40 wire, and then 110 us of 60 and 50: slower by 10 us, all of it
// wire.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tritax {

struct ResultRow {
  std::string id;  // of the scenario, pattern or step
  double time_us = 0;
  std::vector<std::pair<std::string, double>> parts;           // us by name; they add up to the time
  std::vector<std::pair<std::string, std::string>> made_with;  // "version", "machine", fields, knobs
};

struct ResultFile {
  std::string origin;
  std::string schema;  // "tritax.simulate/1"
  std::vector<ResultRow> rows;
};

// Throws UserError with the place, the value and what is allowed, also for a file without a row.
ResultFile parse_result(std::string_view json, const std::string& origin);
ResultFile read_result(const std::string& path);

struct PartChange {
  std::string part;
  double before_us = 0;
  double after_us = 0;
  double change_us() const { return after_us - before_us; }
};

struct Difference {
  std::string name;  // of what the rows were made with
  std::string before;
  std::string after;  // "-" on the side that has none
};

struct RowComparison {
  std::string id;  // "before -> after" where they differ
  double before_us = 0;
  double after_us = 0;
  std::vector<PartChange> parts;        // the largest change first
  std::vector<Difference> differences;  // in the order of the file
  double change() const { return after_us / before_us - 1; }
  // Whether the times are one but for rounding.
  bool is_equal() const;
};

struct ResultComparison {
  std::vector<RowComparison> rows;  // in the order of the first file
  std::vector<std::string> only_before;
  std::vector<std::string> only_after;
};

// Throws UserError when there is no row to compare.
ResultComparison compare_results(const ResultFile& before, const ResultFile& after);

// "wire +10.0, memory +2.1": the parts that make up most of the change; "" where none does.
std::string describe_parts(const RowComparison& row);

// "slower by 10.0 us (10.0 %): wire +10.0" with these; "as long" for equal times.
std::string describe_change(const RowComparison& row);

}  // namespace tritax
