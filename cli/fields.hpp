// Records printed by their tables of fields (model/core/fields.hpp): as tables for people, as CSV, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/record.hpp"
#include "cli/table.hpp"
#include "model/core/fields.hpp"

namespace tritax::cli {

// A value in printed form: times in microseconds.
FieldValue printed(const FieldInfo& field, FieldValue value);

// "" under a heading of a text; booleans in words.
Cell cell_of(const FieldValue& value);

Column column_of(const FieldInfo& field);

// Puts one printed value at its place in JSON.
void put(nlohmann::ordered_json& json, const FieldInfo& field, const FieldValue& value);

// Whether any cell is not empty.
bool is_any(const std::vector<Cell>& cells);

// Columns and rows of the fields that show at `place`: shown::kText or shown::kCsv.
template <typename Record>
Table table_of(const Fields<Record>& fields, const std::vector<Record>& records, unsigned place) {
  Table table;
  table.rows.resize(records.size());
  for (const Field<Record>& field : fields) {
    if (!field.shows_in(place)) continue;
    std::vector<Cell> cells;
    for (const Record& record : records) cells.push_back(cell_of(printed(field, field.get(record))));
    if (field.if_any && place == shown::kText && !is_any(cells)) continue;
    table.columns.push_back(column_of(field));
    for (std::size_t i = 0; i < cells.size(); ++i) table.rows[i].push_back(std::move(cells[i]));
  }
  return table;
}

// Adds the fields that show in JSON, or in another place with JSON answers.
template <typename Record>
void put_fields(nlohmann::ordered_json& json, const Fields<Record>& fields, const Record& record,
                unsigned place = shown::kJson) {
  for (const Field<Record>& field : fields) {
    if (field.shows_in(place)) put(json, field, printed(field, field.get(record)));
  }
}

template <typename Record>
nlohmann::ordered_json json_of(const Fields<Record>& fields, const Record& record,
                               unsigned place = shown::kJson) {
  nlohmann::ordered_json json;
  put_fields(json, fields, record, place);
  return json;
}

}  // namespace tritax::cli
