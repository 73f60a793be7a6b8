// Reads comma-separated tables. Columns are found by name. Values hold no commas and no quotes; lines that
// begin with "#" are remarks. Every message names file:line, column, value and what is allowed.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tritax {

// One line below the header.
class CsvRow {
 public:
  CsvRow(const std::map<std::string, std::size_t, std::less<>>& columns, std::string_view line,
         std::string where);

  const std::string& where() const { return where_; }  // "file:line"

  // Whether the table has this column.
  bool has(std::string_view column) const { return columns_.find(column) != columns_.end(); }

  // Throw UserError for values that are empty, not such a number, out of range, or not one of `names`.
  std::string text(std::string_view column) const;
  std::int64_t integer(std::string_view column, std::int64_t lowest, std::int64_t highest) const;
  double number(std::string_view column, double lowest = 0,
                double highest = std::numeric_limits<double>::max()) const;
  double positive(std::string_view column, std::string_view what) const;
  std::size_t choice(std::string_view column, std::span<const std::string_view> names) const;

  // The unchecked value of a column that the table has.
  std::string_view field(std::string_view column) const;

  [[noreturn]] void refuse(std::string_view column, const std::string& allowed) const;

 private:
  const std::map<std::string, std::size_t, std::less<>>& columns_;
  std::vector<std::string_view> fields_;
  std::string where_;
};

// Refuses the second of two rows that are the same measurement.
class UniqueRows {
 public:
  // `columns`, separated by commas: two rows are the same measurement if they agree in these columns. A table
  // need not have all of the columns.
  explicit UniqueRows(std::string_view columns) : columns_(columns) {}

  void add(const CsvRow& row);

 private:
  std::string_view columns_;
  std::map<std::string, std::string, std::less<>> places_;  // by fields
};

// Reads a table: calls `row` for each line below the header and returns the remarks without their "# ".
// `needed`: required columns, separated by commas; further columns are allowed. `writer` names in messages
// the writer or the content of such files: "'tritax measure'", "a list of sequences". Throws UserError also
// when the table has no row.
std::vector<std::string> read_csv(std::string_view text, const std::string& origin, std::string_view needed,
                                  std::string_view writer, const std::function<void(const CsvRow&)>& row);

// The text of the whole file. Throws UserError that names `writer`.
std::string read_csv_file(const std::string& path, std::string_view writer);

}  // namespace tritax
