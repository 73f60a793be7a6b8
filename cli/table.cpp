#include "cli/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/core/printable.hpp"

namespace tritax::cli {

namespace {

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
    // Readers of CSV fail on zero bytes, and terminals obey other control characters.
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

constexpr std::size_t kGap = 2;           // between columns
constexpr std::size_t kIndent = 4;        // of continuation lines
constexpr std::size_t kLeastBroken = 24;  // narrower texts are not broken, but moved to a further line

// A column in the text form.
struct Place {
  std::size_t width = 0;
  bool numeric = false;
};

// Columns that stand side by side: [first, last).
struct Line {
  std::size_t first = 0;
  std::size_t last = 0;
};

std::size_t indent_of(const Line& line) { return line.first == 0 ? 0 : kIndent; }

// Distributes the columns over lines of `width`, and narrows texts that are wider than the remaining room.
std::vector<Line> lines_of(std::vector<Place>& places, std::size_t width) {
  std::vector<Line> lines(1);
  std::size_t used = 0;
  for (std::size_t c = 0; c < places.size(); ++c) {
    Line* line = &lines.back();
    const std::size_t gap = c == line->first ? 0 : kGap;
    const std::size_t left = width > used + gap ? width - used - gap : 0;
    const bool breaks = !places[c].numeric && c + 1 == places.size() && left >= kLeastBroken;
    if (c > line->first && places[c].width > left && !breaks) {
      lines.push_back({c, c});
      line = &lines.back();
      used = kIndent;
    } else {
      used += gap;
    }
    if (!places[c].numeric) {
      const std::size_t most = width > used ? width - used : 1;
      places[c].width = std::min(places[c].width, std::max(most, std::size_t{1}));
    }
    used += places[c].width;
    line->last = c + 1;
  }
  return lines;
}

// Pieces of a text of at most `width` columns, broken at blanks where possible.
std::vector<std::string> pieces_of(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return {text};
  std::vector<std::string> pieces;
  std::string rest = wrapped(text, width);
  for (std::size_t begin = 0; begin < rest.size();) {
    const std::size_t end = rest.find('\n', begin);
    pieces.push_back(rest.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

std::string text_line(const std::vector<std::string>& cells, const std::vector<Place>& places,
                      const Line& line) {
  std::vector<std::vector<std::string>> pieces;
  std::size_t height = 1;
  for (std::size_t c = line.first; c < line.last; ++c) {
    pieces.push_back(pieces_of(cells[c], places[c].width));
    height = std::max(height, pieces.back().size());
  }
  std::string text;
  for (std::size_t row = 0; row < height; ++row) {
    std::string one(indent_of(line), ' ');
    for (std::size_t c = line.first; c < line.last; ++c) {
      const std::vector<std::string>& column = pieces[c - line.first];
      one.append(c == line.first ? 0 : kGap, ' ');
      one += padded(row < column.size() ? column[row] : "", places[c].width, places[c].numeric);
    }
    one.erase(one.find_last_not_of(' ') + 1);
    text += one + '\n';
  }
  return text;
}

}  // namespace

void Table::add(std::vector<Cell> row) {
  TRITAX_ASSERT(row.size() == columns.size(), "a row has one cell a column");
  rows.push_back(std::move(row));
}

std::string to_text(const Table& table, const TextStyle& style) {
  std::vector<std::string> header;
  std::vector<Place> places;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    header.push_back(column.unit.empty() ? column.title : fmt::format("{} ({})", column.title, column.unit));
    places.push_back({width_of(header.back()), column_is_numeric(table, c)});
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (std::size_t c = 0; c < row.size(); ++c) {
      cells.push_back(printable(text_of(row[c], table.columns[c].decimals)));
      places[c].width = std::max(places[c].width, width_of(cells.back()));
    }
  }
  const std::vector<Line> lines =
      style.width == 0 ? std::vector<Line>{{0, places.size()}} : lines_of(places, style.width);
  std::string title;
  for (const Line& line : lines) title += text_line(header, places, line);
  if (style.bold_header) title = fmt::format("\x1b[1m{}\x1b[0m\n", title.substr(0, title.size() - 1));
  std::string text = title;
  for (const std::vector<std::string>& row : rows) {
    for (const Line& line : lines) text += text_line(row, places, line);
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
