// A table with two written forms: aligned for people, comma-separated for programs.
//
// Cells keep their type, so the text form can round while the CSV form keeps every digit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tritax::cli {

struct Column {
  std::string key;        // CSV header; carries the unit as suffix ("time_us")
  std::string title;      // text header
  std::string unit = "";  // shown behind the title; "" for counts and words
  int decimals = 1;       // of floating point cells in the text form
};

// monostate is an empty cell; NaN and infinity print as empty cells.
using Cell = std::variant<std::monostate, std::string, std::int64_t, double>;

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // as wide as `columns`

  void add(std::vector<Cell> row);
};

struct TextStyle {
  bool bold_header = false;
  // Columns of the terminal; 0: unlimited. Columns that do not fit side by side continue in a further,
  // indented line; a wider text is broken at blanks.
  std::size_t width = 0;
};

// Aligned columns, numbers to the right, words to the left, a header line with units.
std::string to_text(const Table& table, const TextStyle& style = {});

// RFC 4180: a header of keys, then one line per row.
std::string to_csv(const Table& table);

}  // namespace tritax::cli
