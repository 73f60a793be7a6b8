#include "model/core/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"

namespace tritax {

namespace {

using Columns = std::map<std::string, std::size_t, std::less<>>;

constexpr std::size_t kLongestField = 1000;  // bytes; names of shapes and devices have some tens

void require_short(std::string_view field, const std::string& where) {
  if (field.size() <= kLongestField) return;
  throw UserError(fmt::format("{}: a field of {} bytes, '{}'; allowed: at most {}", where, field.size(),
                              field, kLongestField));
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = line.find(',', begin);
    fields.push_back(line.substr(begin, comma == std::string_view::npos ? comma : comma - begin));
    if (comma == std::string_view::npos) return fields;
    begin = comma + 1;
  }
}

// `header`: the line that should name the columns.
void require_column(const Columns& columns, std::string_view name, std::string_view header,
                    std::string_view needed, const std::string& where, std::string_view writer) {
  if (columns.count(name) > 0) return;
  std::vector<std::string> names;
  for (const auto& [known, place] : columns) names.push_back(known);
  const std::string nearest = nearest_name(std::string(name), names);
  throw UserError(
      fmt::format("{}: column '{}' is missing{} in '{}'; allowed: a first line with the columns {} and maybe "
                  "others, as {} has it",
                  where, name, nearest.empty() ? "" : fmt::format(" (is '{}' it?)", nearest), header,
                  fmt::join(split(needed), ", "), writer));
}

Columns columns_of(std::string_view line, std::string_view needed, const std::string& where,
                   std::string_view writer) {
  Columns columns;
  for (const std::string_view name : split(line)) {
    require_short(name, where);
    if (!columns.emplace(name, columns.size()).second) {
      throw UserError(fmt::format("{}: column '{}' appears twice", where, name));
    }
  }
  for (const std::string_view name : split(needed)) {
    require_column(columns, name, line, needed, where, writer);
  }
  return columns;
}

void require_printable(std::string_view line, const std::string& where) {
  const std::size_t at = find_control(line, "\t");
  if (at == std::string_view::npos) return;
  throw UserError(fmt::format("{}: control character 0x{:02x}; leave it out", where,
                              static_cast<unsigned char>(line[at])));
}

// The whole of `text` as a number, or nothing.
template <typename Number>
std::optional<Number> parsed(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

CsvRow::CsvRow(const Columns& columns, std::string_view line, std::string where)
    : columns_(columns), fields_(split(line)), where_(std::move(where)) {
  if (fields_.size() != columns_.size()) {
    throw UserError(fmt::format("{}: {} fields, but the header names {} columns", where_, fields_.size(),
                                columns_.size()));
  }
  for (const std::string_view field : fields_) require_short(field, where_);
}

std::string_view CsvRow::field(std::string_view column) const {
  const auto found = columns_.find(column);
  if (found == columns_.end()) {
    throw UserError(fmt::format("{}: the header names no column '{}'", where_, column));
  }
  return fields_[found->second];
}

std::string CsvRow::text(std::string_view column) const {
  const std::string_view value = field(column);
  if (value.empty()) refuse(column, "a value");
  return std::string(value);
}

std::int64_t CsvRow::integer(std::string_view column, std::int64_t lowest, std::int64_t highest) const {
  const auto number = parsed<std::int64_t>(field(column));
  if (!number || *number < lowest || *number > highest) {
    refuse(column, fmt::format("a whole number from {} to {}", lowest, highest));
  }
  return *number;
}

double CsvRow::number(std::string_view column, double lowest, double highest) const {
  const auto number = parsed<double>(field(column));
  if (!number || !std::isfinite(*number) || *number < lowest || *number > highest) {
    const bool any = lowest == std::numeric_limits<double>::lowest();
    refuse(column, highest == std::numeric_limits<double>::max()
                       ? (any ? "a number" : fmt::format("a number from {} on", lowest))
                       : fmt::format("a number from {} to {}", lowest, highest));
  }
  return *number;
}

double CsvRow::positive(std::string_view column, std::string_view what) const {
  const auto number = parsed<double>(field(column));
  if (!number || !std::isfinite(*number) || *number <= 0) refuse(column, fmt::format("{} above 0", what));
  return *number;
}

std::size_t CsvRow::choice(std::string_view column, std::span<const std::string_view> names) const {
  const auto found = std::find(names.begin(), names.end(), field(column));
  if (found == names.end()) refuse(column, fmt::format("{}", fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

void CsvRow::refuse(std::string_view column, const std::string& allowed) const {
  throw UserError(fmt::format("{}: column '{}': '{}' is not allowed; allowed: {}", where_, column,
                              field(column), allowed));
}

void UniqueRows::add(const CsvRow& row) {
  std::string what;
  for (const std::string_view column : split(columns_)) {
    if (row.has(column))
      what += fmt::format("{}{} = {}", what.empty() ? "" : ", ", column, row.field(column));
  }
  const auto [place, fresh] = places_.emplace(what, row.where());
  if (!fresh) {
    throw UserError(
        fmt::format("{}: this row repeats {} ({}); allowed: one row each", row.where(), place->second, what));
  }
}

std::vector<std::string> read_csv(std::string_view text, const std::string& origin, std::string_view needed,
                                  std::string_view writer, const std::function<void(const CsvRow&)>& row) {
  std::vector<std::string> remarks;
  std::optional<Columns> columns;
  bool any_row = false;
  int lines = 0;
  text = without_byte_order_mark(text);
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const std::string where = fmt::format("{}:{}", origin, number);
    lines = number;
    if (line.empty()) continue;
    require_printable(line, where);
    if (line.front() != '#' && line.find('"') != std::string_view::npos) {
      throw UserError(
          fmt::format("{}: a quotation mark; write fields without quotes, names have no commas", where));
    }
    if (line.front() == '#') {
      remarks.emplace_back(line.substr(std::min(line.find_first_not_of("# "), line.size())));
    } else if (!columns) {
      columns = columns_of(line, needed, where, writer);
    } else {
      row(CsvRow(*columns, line, where));
      any_row = true;
    }
  }
  if (!any_row) {
    throw UserError(
        fmt::format("{}:{}: the file ends {}; allowed: a line of column names ({}) and at least one row of "
                    "values below it, as {} has it",
                    origin, std::max(1, lines),
                    columns ? "behind its column names, without a row of values" : "without column names",
                    fmt::join(split(needed), ", "), writer));
  }
  return remarks;
}

std::string read_csv_file(const std::string& path, std::string_view writer) {
  constexpr std::size_t kLargestFileBytes = std::size_t{256} << 20;  // some million rows
  return read_file(path, fmt::format("the path of a CSV file: {}", writer), kLargestFileBytes);
}

}  // namespace tritax
