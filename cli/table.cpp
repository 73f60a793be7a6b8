#include "cli/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/core/printable.hpp"

namespace tritax::cli {

namespace {

// Columns on a terminal: code points, since cells may hold UTF-8 signs such as ×.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_number(const Cell& cell) {
  return std::holds_alternative<std::int64_t>(cell) || std::holds_alternative<double>(cell);
}

std::string text_of(const Cell& cell, int decimals) {
  if (const auto* word = std::get_if<std::string>(&cell)) {
    return *word;
  }
  if (const auto* count = std::get_if<std::int64_t>(&cell)) {
    return fmt::format("{}", *count);
  }
  if (const auto* value = std::get_if<double>(&cell); value != nullptr && std::isfinite(*value)) {
    return fmt::format("{:.{}f}", *value, decimals);
  }
  return "-";
}

std::string csv_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    // Readers of CSV stumble over zero bytes, and terminals obey the others.
    const std::string word = without_controls(*text, "\n\t");
    if (word.find_first_of(",\"\n") == std::string::npos) {
      return word;
    }
    std::string quoted = "\"";
    for (const char c : word) {
      quoted += c;
      if (c == '"') {
        quoted += c;
      }
    }
    return quoted + '"';
  }
  if (const auto* count = std::get_if<std::int64_t>(&cell)) {
    return fmt::format("{}", *count);
  }
  if (const auto* value = std::get_if<double>(&cell); value != nullptr && std::isfinite(*value)) {
    return fmt::format("{}", *value);
  }
  return "";
}

bool column_is_numeric(const Table& table, std::size_t column) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [column](const std::vector<Cell>& row) { return is_number(row[column]); });
}

std::string padded(const std::string& text, std::size_t width, bool to_right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return to_right ? space + text : text + space;
}

std::string joined_line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                        const std::vector<bool>& numeric) {
  std::string line;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    line.append(c == 0 ? 0 : 2, ' ').append(padded(cells[c], widths[c], numeric[c]));
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void Table::add(std::vector<Cell> row) {
  TRITAX_ASSERT(row.size() == columns.size(), "a row has one cell a column");
  rows.push_back(std::move(row));
}

std::string to_text(const Table& table, bool bold_header) {
  const std::size_t width = table.columns.size();
  std::vector<std::string> header;
  std::vector<std::size_t> widths;
  std::vector<bool> numeric;
  for (std::size_t c = 0; c < width; ++c) {
    const Column& column = table.columns[c];
    header.push_back(column.unit.empty() ? column.title : fmt::format("{} ({})", column.title, column.unit));
    widths.push_back(width_of(header.back()));
    numeric.push_back(column_is_numeric(table, c));
  }
  std::vector<std::vector<std::string>> lines;
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (std::size_t c = 0; c < width; ++c) {
      line.push_back(printable(text_of(row[c], table.columns[c].decimals)));
      widths[c] = std::max(widths[c], width_of(line.back()));
    }
  }
  const std::string title = joined_line(header, widths, numeric);
  std::string text = bold_header ? fmt::format("\x1b[1m{}\x1b[0m\n", title) : title + '\n';
  for (const std::vector<std::string>& line : lines) {
    text += joined_line(line, widths, numeric) + '\n';
  }
  return text;
}

std::string to_csv(const Table& table) {
  std::string text;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    text.append(c == 0 ? "" : ",").append(csv_of(table.columns[c].key));
  }
  text += '\n';
  for (const std::vector<Cell>& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      text.append(c == 0 ? "" : ",").append(csv_of(row[c]));
    }
    text += '\n';
  }
  return text;
}

}  // namespace tritax::cli
