#include "model/parts/read_tile_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/parts/tile_set.hpp"

namespace tritax {

namespace {

constexpr std::size_t kLargestTileSet = std::size_t{8} << 30;
constexpr std::int64_t kMostTiles = std::int64_t{1} << 26;
constexpr std::string_view kBanner = "%%MatrixMarket";

// Lines of a text, numbered.
class TileSetLines {
 public:
  TileSetLines(std::string_view text, const std::string& origin) : rest_(text), origin_(origin) {}

  // The next line that is neither empty nor a comment; nothing at the end.
  std::optional<std::string_view> next() {
    while (!rest_.empty()) {
      const std::string_view line = any();
      const auto first = line.find_first_not_of(" \t\r");
      if (first != std::string_view::npos && line[first] != '%' && line[first] != '#') return line;
    }
    return std::nullopt;
  }

  std::string_view any() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return line;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(fmt::format("{}:{}: {}", origin_, number_, what));
  }

 private:
  std::string_view rest_;
  const std::string& origin_;
  std::int64_t number_ = 0;
};

std::string_view word_of(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
  line.remove_prefix(word.size());
  return word;
}

std::int64_t whole_number(const TileSetLines& lines, std::string_view& line, std::string_view what,
                          std::int64_t low, std::int64_t high) {
  const std::string_view word = word_of(line);
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (word.empty() || fault != std::errc{} || end != word.data() + word.size() || number < low ||
      number > high) {
    lines.refuse(fmt::format("{} is '{}'; give a whole number from {} to {}", what, word, low, high));
  }
  return number;
}

std::size_t banner_word(const TileSetLines& lines, std::string_view& line,
                        std::span<const std::string_view> known) {
  std::string word(word_of(line));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const auto found = std::find(known.begin(), known.end(), word);
  if (found == known.end()) {
    std::string names;
    for (const std::string_view name : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    lines.refuse(fmt::format("the banner says '{}'; known are {}", word, names));
  }
  return static_cast<std::size_t>(found - known.begin());
}

using Entry = std::pair<std::int32_t, std::int32_t>;  // row, column

SparseMatrix matrix_of(std::int32_t rows, std::int32_t cols, std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  SparseMatrix matrix{"", rows, cols, std::vector<std::int32_t>(static_cast<std::size_t>(rows) + 1, 0), {}};
  matrix.columns.reserve(entries.size());
  for (const auto& [row, column] : entries) {
    ++matrix.offsets[static_cast<std::size_t>(row) + 1];
    matrix.columns.push_back(column);
  }
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    matrix.offsets[row + 1] += matrix.offsets[row];
  }
  return matrix;
}

SparseMatrix read_matrix_market(TileSetLines& lines) {
  static constexpr std::array<std::string_view, 1> kObjects{"matrix"}, kFormats{"coordinate"};
  static constexpr std::array<std::string_view, 4> kFields{"real", "integer", "complex", "pattern"};
  static constexpr std::array<std::string_view, 4> kSymmetries{"general", "symmetric", "skew-symmetric",
                                                               "hermitian"};
  std::string_view banner = lines.any();
  word_of(banner);
  banner_word(lines, banner, kObjects);
  banner_word(lines, banner, kFormats);
  banner_word(lines, banner, kFields);
  const bool mirrored = banner_word(lines, banner, kSymmetries) != 0;
  auto line = lines.next();
  if (!line) lines.refuse("the file ends before its sizes; give rows, columns and entries");
  const auto rows = static_cast<std::int32_t>(whole_number(lines, *line, "rows", 1, kMostTiles));
  const auto cols = static_cast<std::int32_t>(whole_number(lines, *line, "columns", 1, kMostTiles));
  const std::int64_t most = mirrored ? kMostNonzeros / 2 : kMostNonzeros;
  const std::int64_t count = whole_number(lines, *line, "entries", 0, most);
  std::vector<Entry> entries;
  for (std::int64_t i = 0; i < count; ++i) {
    line = lines.next();
    if (!line) lines.refuse(fmt::format("the file ends after {} entries of {}", i, count));
    const auto row = static_cast<std::int32_t>(whole_number(lines, *line, "row", 1, rows) - 1);
    const auto column = static_cast<std::int32_t>(whole_number(lines, *line, "column", 1, cols) - 1);
    entries.emplace_back(row, column);
    if (mirrored && row != column) {
      if (row >= cols || column >= rows)
        lines.refuse("lies outside the mirror image of a matrix that is not square");
      entries.emplace_back(column, row);
    }
  }
  if (lines.next()) lines.refuse(fmt::format("more than the {} entries that the file announces", count));
  return matrix_of(rows, cols, std::move(entries));
}

SparseMatrix read_sizes(TileSetLines& lines, const std::string& origin) {
  std::vector<std::int64_t> sizes;
  std::int64_t sum = 0;
  while (auto line = lines.next()) {
    sizes.push_back(whole_number(lines, *line, "the size of a tile", 0, kMostNonzeros));
    if (!word_of(*line).empty()) lines.refuse("more than one number on a line; give the size of one tile");
    sum += sizes.back();
    if (sum > kMostNonzeros) lines.refuse(fmt::format("over {} atoms in all", kMostNonzeros));
  }
  if (sizes.empty() || static_cast<std::int64_t>(sizes.size()) > kMostTiles) {
    lines.refuse(fmt::format("{} tiles; give from 1 to {}", sizes.size(), kMostTiles));
  }
  return tile_set_of_lengths(origin, sizes);
}

}  // namespace

SparseMatrix parse_tile_set(const std::string& text, const std::string& origin) {
  const std::string_view whole = without_byte_order_mark(text);
  TileSetLines lines(whole, origin);
  SparseMatrix matrix = whole.starts_with(kBanner) ? read_matrix_market(lines) : read_sizes(lines, origin);
  matrix.name = origin;
  return matrix;
}

SparseMatrix read_tile_set(const std::string& path) {
  return parse_tile_set(
      read_file(path, "a matrix in Matrix Market form, or the sizes of tiles", kLargestTileSet), path);
}

}  // namespace tritax
