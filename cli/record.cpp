#include "cli/record.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/report.hpp"
#include "cli/run_input.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;
using Cells = std::vector<std::pair<std::string, Cell>>;

// The value of one column; names and booleans as text.
Cell cell_of(const Values& values, std::size_t spec, std::size_t part) {
  const Spec& one = values.specs()[spec];
  const bool text =
      one.kind == ValueKind::name || one.kind == ValueKind::boolean || one.kind == ValueKind::file;
  if (text) return text_of(values, spec);
  return values.at(values.first_column(spec) + part);
}

// Every column of the values; empty for specs that do not count.
template <typename Counts>
void add_columns(Cells& cells, const Values& values, const Counts& counts) {
  for (std::size_t spec = 0; spec < values.specs().size(); ++spec) {
    const Spec& one = values.specs()[spec];
    for (std::size_t part = 0; part < one.columns(); ++part) {
      cells.emplace_back(one.column(part), counts(one) ? cell_of(values, spec, part) : Cell{});
    }
  }
}

bool is_used(const Record& record, const Spec& knob) {
  return knob.of_every_run || record.pattern == nullptr || record.pattern->uses(knob.name);
}

Cells cells_of(const Record& record) {
  Cells cells{{"version", std::string(version())}};
  if (record.machine != nullptr) {
    cells.emplace_back("machine", record.machine->name);
    cells.emplace_back("machine_changes",
                       fmt::format("{}", fmt::join(describe_changes(*record.machine), "; ")));
    cells.emplace_back("sustained", std::string(record.machine->after_long_load ? "true" : "false"));
  }
  if (record.seed) cells.emplace_back("seed", fmt::format("{}", *record.seed));
  if (!record.schedule.empty()) cells.emplace_back("schedule_file", record.schedule);
  if (record.problem != nullptr) {
    cells.emplace_back("workload", std::string(record.problem->workload->name));
    add_columns(cells, record.problem->values, [](const Spec&) { return true; });
  }
  if (record.pattern != nullptr) cells.emplace_back("pattern", std::string(record.pattern->name));
  if (record.knobs != nullptr) {
    add_columns(cells, *record.knobs, [&](const Spec& knob) { return is_used(record, knob); });
  }
  return cells;
}

bool has_column(const std::vector<Column>& columns, const std::string& key) {
  return std::any_of(columns.begin(), columns.end(), [&](const Column& column) { return column.key == key; });
}

}  // namespace

Record record_of(const RunInput& run_input, std::optional<std::uint64_t> seed) {
  Record record;
  record.machine = run_input.machine.name.empty() ? nullptr : &run_input.machine;
  record.seed = seed;
  record.schedule = run_input.file;
  if (run_input.scenario) {
    record.problem = &run_input.scenario->problem;
    record.pattern = run_input.rebuild->pattern;
    record.knobs = &run_input.scenario->knobs;
  }
  return record;
}

ordered_json json_of(const Record& record) {
  ordered_json json{{"version", version()}};
  if (record.machine != nullptr) {
    json["machine"] = record.machine->name;
    json["machine_changes"] = describe_changes(*record.machine);
    json["sustained"] = record.machine->after_long_load;
  }
  if (record.seed) json["seed"] = *record.seed;
  if (!record.schedule.empty()) json["schedule_file"] = record.schedule;
  if (record.problem != nullptr) json["workload"] = json_of(*record.problem);
  if (record.pattern != nullptr) json["pattern"] = record.pattern->name;
  if (record.knobs != nullptr) {
    ordered_json knobs = ordered_json::object();
    for (std::size_t i = 0; i < record.knobs->specs().size(); ++i) {
      const Spec& knob = record.knobs->specs()[i];
      knobs[std::string(knob.name)] = is_used(record, knob) ? json_of(*record.knobs, i) : ordered_json();
    }
    json["knobs"] = std::move(knobs);
  }
  return json;
}

void add_record(ordered_json& json, const Record& record) {
  const ordered_json all = json_of(record);
  for (const auto& [key, value] : all.items()) {
    if (!json.contains(key)) json[key] = value;
  }
}

void RecordTable::add(const Table& rows, const Record& record) {
  if (columns_.empty()) columns_ = rows.columns;
  TRITAX_ASSERT(columns_.size() == rows.columns.size(), "records of one table have the same rows");
  records_.push_back(cells_of(record));
  for (const std::vector<Cell>& row : rows.rows) {
    rows_.push_back(row);
    record_of_row_.push_back(records_.size() - 1);
  }
}

Table RecordTable::table() const {
  Table table{columns_, {}};
  std::vector<std::string> added;
  for (const Cells& record : records_) {
    for (const auto& [key, cell] : record) {
      if (has_column(table.columns, key)) continue;
      added.push_back(key);
      table.columns.push_back({key, key});
    }
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::vector<Cell> row = rows_[i];
    const Cells& record = records_[record_of_row_[i]];
    for (const std::string& key : added) {
      const auto found =
          std::find_if(record.begin(), record.end(), [&](const auto& cell) { return cell.first == key; });
      row.push_back(found == record.end() ? Cell{} : found->second);
    }
    table.add(std::move(row));
  }
  return table;
}

Table with_record(const Table& rows, const Record& record) {
  RecordTable table;
  table.add(rows, record);
  return table.table();
}

}  // namespace tritax::cli
