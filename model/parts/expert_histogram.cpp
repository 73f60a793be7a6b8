#include "model/parts/expert_histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/memo.hpp"
#include "model/core/read_file.hpp"
#include "model/schedule/json_reader.hpp"
#include "model/workload/file_values.hpp"

namespace tritax {

namespace {

constexpr std::size_t kLargestHistogram = std::size_t{64} << 20;
constexpr std::int64_t kMostCounted = std::int64_t{1} << 40;  // tokens per expert; keeps sums far below 2^63
constexpr std::size_t kMostKept = 16;
constexpr std::string_view kWanted = "tokens of each expert, as CSV or JSON";

std::string_view trimmed_cell(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::int64_t count_of(std::string_view cell, const std::string& place) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (cell.empty() || fault != std::errc{} || end != cell.data() + cell.size() || number < 0 ||
      number > kMostCounted) {
    throw UserError(fmt::format("{}: '{}' is not a number of tokens; give whole numbers from 0 to {}", place,
                                cell, kMostCounted));
  }
  return number;
}

void read_lines(std::string_view text, ExpertHistogram& histogram) {
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed_cell(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::string place = fmt::format("{}:{}", histogram.origin, number);
    std::vector<std::int64_t> row;
    for (bool more = true; more;) {
      const std::size_t comma = std::min(line.find(','), line.size());
      row.push_back(count_of(trimmed_cell(line.substr(0, comma)), place));
      more = comma < line.size();
      line.remove_prefix(std::min(comma + 1, line.size()));
    }
    histogram.counts.push_back(std::move(row));
    histogram.places.push_back(place);
  }
}

void read_arrays(std::string_view text, ExpertHistogram& histogram) {
  const auto parsed = parse_json(text, histogram.origin);
  const JsonValue root(parsed, histogram.origin);
  root.expect_array();
  const auto row_of = [](const JsonValue& array) {
    std::vector<std::int64_t> row;
    array.expect_array();
    for (std::size_t i = 0; i < array.size(); ++i) row.push_back(array.item(i).integer(0, kMostCounted));
    return row;
  };
  if (parsed.empty()) root.refuse("give the tokens of at least one expert");
  if (!parsed.front().is_array()) {
    histogram.counts.push_back(row_of(root));
    histogram.places.push_back(histogram.origin);
    return;
  }
  for (std::size_t i = 0; i < root.size(); ++i) {
    histogram.counts.push_back(row_of(root.item(i)));
    histogram.places.push_back(fmt::format("{}: [{}]", histogram.origin, i));
  }
}

void check_rows(ExpertHistogram& histogram) {
  auto& counts = histogram.counts;
  if (counts.empty())
    throw UserError(fmt::format("{}: there is no number in it; give {}", histogram.origin, kWanted));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].empty() || counts[i].size() != counts.front().size()) {
      throw UserError(fmt::format("{}: {} numbers where {} has {}; give every GPU one of each expert",
                                  histogram.places[i], counts[i].size(), histogram.places.front(),
                                  counts.front().size()));
    }
  }
  if (counts.size() > 1 && counts.front().size() == 1) {
    std::vector<std::int64_t> column;
    for (const auto& row : counts) column.push_back(row.front());
    counts = {std::move(column)};
    histogram.places.resize(1);
  }
  const auto none = [](const auto& row) {
    return std::all_of(row.begin(), row.end(), [](auto n) { return n == 0; });
  };
  if (std::all_of(counts.begin(), counts.end(), none)) {
    throw UserError(fmt::format("{}: no expert gets a token; give at least one", histogram.places.front()));
  }
}

}  // namespace

std::vector<std::int64_t> ExpertHistogram::totals() const {
  std::vector<std::int64_t> sums(counts.front().size(), 0);
  for (const auto& row : counts) {
    for (std::size_t i = 0; i < row.size(); ++i) sums[i] += row[i];
  }
  return sums;
}

ExpertHistogram parse_expert_histogram(const std::string& text, const std::string& origin) {
  ExpertHistogram histogram{origin, {}, {}};
  const std::string_view whole = without_byte_order_mark(text);
  const std::size_t first = whole.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && whole[first] == '[') {
    read_arrays(whole, histogram);
  } else {
    read_lines(whole, histogram);
  }
  check_rows(histogram);
  return histogram;
}

std::shared_ptr<const ExpertHistogram> expert_histogram_of(std::int64_t file) {
  static Memo<std::int64_t, ExpertHistogram> kept(kMostKept);
  if (file <= 0) return nullptr;
  return kept.get(file, [file] {
    const std::string path = file_of(file);
    return parse_expert_histogram(read_file(path, kWanted, kLargestHistogram), path);
  });
}

std::vector<std::int64_t> apportioned(const std::vector<std::int64_t>& weights, std::int64_t whole) {
  const std::int64_t sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  TRITAX_ASSERT(sum > 0, "something weighs");
  if (sum == whole) return weights;
  std::vector<std::int64_t> parts;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t left = whole;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double exact =
        static_cast<double>(whole) * (static_cast<double>(weights[i]) / static_cast<double>(sum));
    const auto down = std::min(static_cast<std::int64_t>(exact), left);
    parts.push_back(down);
    left -= down;
    remainders.emplace_back(weights[i] > 0 ? static_cast<double>(down) - exact : 1, i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (std::size_t i = 0; left > 0; i = (i + 1) % remainders.size()) {
    if (remainders[i].first > 0.5) continue;  // without weight
    ++parts[remainders[i].second];
    --left;
  }
  return parts;
}

}  // namespace tritax
