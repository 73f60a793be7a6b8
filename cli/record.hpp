// What a result needs to say so that it can be read alone, years later: which Tritax, on which machine with
// which changes, for which problem, with which knobs. Every JSON and CSV record and every trace has it.
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

struct Subject;

// What a record is of. Pointers are null where there is no such thing: a schedule file has no problem. They
// must live as long as the record.
struct Record {
  const Machine* machine = nullptr;
  std::string schedule = {};  // the file of a schedule
  const Problem* problem = nullptr;
  const Pattern* pattern = nullptr;
  const Values* knobs = nullptr;  // all of them, resolved
  std::optional<std::uint64_t> seed = {};
};

Record record_of(const Subject& subject, std::optional<std::uint64_t> seed = {});

// "version", "machine", "machine_changes", "sustained", "seed", "schedule_file", "workload", "pattern",
// "knobs"; without those that the record does not have. A knob that the pattern does not use is null.
nlohmann::ordered_json json_of(const Record& record);

// Adds these to `json`, but nothing that it has already.
void add_record(nlohmann::ordered_json& json, const Record& record);

// Rows with the same as columns behind their own: "version", "machine", "machine_changes", "sustained",
// "seed", "schedule_file", "workload", every field, "pattern", every knob by its columns ("tile_m"). Rows of
// different workloads have the columns of all; the cells of other workloads stay empty. A column that the
// rows have already keeps what they say.
class RecordTable {
 public:
  // Of tables without rows the columns count.
  void add(const Table& rows, const Record& record);
  Table table() const;

 private:
  std::vector<Column> columns_;  // of the rows
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::size_t> record_of_row_;
  std::vector<std::vector<std::pair<std::string, Cell>>> records_;
};

// One table, all rows of one record.
Table with_record(const Table& rows, const Record& record);

}  // namespace tritax::cli
