// Provenance of a result, so that it can be read alone, years later: the Tritax version, the machine with its
// changes, the problem, and the knobs. Every JSON and CSV record and every trace has it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/table.hpp"
#include "model/machine/machine.hpp"
#include "model/workload/workload.hpp"

namespace tritax::cli {

struct RunInput;

// Parts of a record. A pointer is null for a missing part: a schedule file has no problem. The targets must
// outlive the record.
struct Record {
  const Machine* machine = nullptr;
  std::string schedule = {};  // file of a schedule
  const Problem* problem = nullptr;
  const Pattern* pattern = nullptr;
  const Values* knobs = nullptr;  // all of them, resolved
  std::optional<std::uint64_t> seed = {};
};

Record record_of(const RunInput& run_input, std::optional<std::uint64_t> seed = {});

// "version", "machine", "machine_changes", "sustained", "seed", "schedule_file", "workload", "pattern",
// "knobs"; without parts that the record lacks. A knob that the pattern does not use is null.
nlohmann::ordered_json json_of(const Record& record);

// Adds these keys to `json`, except keys that it already has.
void add_record(nlohmann::ordered_json& json, const Record& record);

// Rows with the same parts as further columns: "version", "machine", "machine_changes", "sustained", "seed",
// "schedule_file", "workload", every field, "pattern", every knob by its columns ("tile_m"). Rows of
// different workloads have the columns of all workloads; cells of other workloads stay empty. Columns that
// the rows already have keep their values.
class RecordTable {
 public:
  // A table without rows still adds its columns.
  void add(const Table& rows, const Record& record);
  Table table() const;

 private:
  std::vector<Column> columns_;  // of the rows
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::size_t> record_of_row_;
  std::vector<std::vector<std::pair<std::string, Cell>>> records_;
};

// One table; all its rows belong to one record.
Table with_record(const Table& rows, const Record& record);

}  // namespace tritax::cli
