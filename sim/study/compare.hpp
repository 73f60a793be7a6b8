// Compares two results of this program: which runs got slower, and by which part of their critical path.
//
// A result is the --json output of `simulate`, `explain`, `advise` or `layer`, on any machine and by any
// version. Its rows are runs, each with a time and the parts that add up to it. Rows of equal id are
// compared; if each file has one row, these two are compared, whatever their ids.
//
// Example: 100 us of 60 compute and 40 wire before, 110 us of 60 and 50 after: slower by 10 us, all of it
// wire.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tritax {

struct ResultRow {
  std::string id;  // id of the scenario, pattern or step
  double time_us = 0;
  std::vector<std::pair<std::string, double>> parts;           // us by name; they add up to the time
  std::vector<std::pair<std::string, std::string>> made_with;  // "version", "machine", fields, knobs
};

struct ResultFile {
  std::string origin;
  std::string schema;  // "tritax.simulate/1"
  std::vector<ResultRow> rows;
};

// Throws UserError with the place, the value and the allowed values, also for a file without a row.
ResultFile parse_result(std::string_view json, const std::string& origin);
ResultFile read_result(const std::string& path);

struct PartChange {
  std::string part;
  double before_us = 0;
  double after_us = 0;
  double change_us() const { return after_us - before_us; }
};

struct Difference {
  std::string name;  // name in ResultRow::made_with
  std::string before;
  std::string after;  // "-" on the side without it
};

struct RowComparison {
  std::string id;  // "before -> after" if the ids differ
  double before_us = 0;
  double after_us = 0;
  std::vector<PartChange> parts;        // the largest change first
  std::vector<Difference> differences;  // in the order of the file
  double change() const { return after_us / before_us - 1; }
  // Whether the times are equal up to rounding.
  bool is_equal() const;
};

struct ResultComparison {
  std::vector<RowComparison> rows;  // in the order of the first file
  std::vector<std::string> only_before;
  std::vector<std::string> only_after;
};

// Throws UserError if there is no row to compare.
ResultComparison compare_results(const ResultFile& before, const ResultFile& after);

// "wire +10.0, memory +2.1": the parts that make up most of the change; "" if none does.
std::string describe_parts(const RowComparison& row);

// "slower by 10.0 us (10.0 %): wire +10.0" with describe_parts(); "as long" for equal times.
std::string describe_change(const RowComparison& row);

}  // namespace tritax
