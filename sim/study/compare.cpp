#include "sim/study/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/core/error.hpp"

namespace tritax {

namespace {

// Equal runs differ by at most this, with any compiler.
constexpr double kSameButForRounding = 1e-9;

std::map<std::string_view, const ResultRow*> rows_by_id(const ResultFile& file) {
  std::map<std::string_view, const ResultRow*> rows;
  for (const ResultRow& row : file.rows) rows.emplace(row.id, &row);
  return rows;
}

template <typename Value>
const Value* find_named(const std::vector<std::pair<std::string, Value>>& all, const std::string& name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == name; });
  return at == all.end() ? nullptr : &at->second;
}

std::vector<PartChange> changes_of(const ResultRow& before, const ResultRow& after) {
  std::vector<PartChange> changes;
  for (const auto& [part, us] : before.parts) {
    const double* then = find_named(after.parts, part);
    changes.push_back({part, us, then == nullptr ? 0 : *then});
  }
  for (const auto& [part, us] : after.parts) {
    if (find_named(before.parts, part) == nullptr) changes.push_back({part, 0, us});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const PartChange& a, const PartChange& b) {
    return std::abs(a.change_us()) > std::abs(b.change_us());
  });
  return changes;
}

std::vector<Difference> differences_of(const ResultRow& before, const ResultRow& after) {
  std::vector<Difference> differences;
  for (const auto& [name, value] : before.made_with) {
    const std::string* then = find_named(after.made_with, name);
    if (then == nullptr || *then != value) {
      differences.push_back({name, value, then == nullptr ? "-" : *then});
    }
  }
  for (const auto& [name, value] : after.made_with) {
    if (find_named(before.made_with, name) == nullptr) differences.push_back({name, "-", value});
  }
  return differences;
}

RowComparison compare_rows(const ResultRow& before, const ResultRow& after) {
  return {before.id == after.id ? before.id : fmt::format("{} -> {}", before.id, after.id), before.time_us,
          after.time_us, changes_of(before, after), differences_of(before, after)};
}

// "a, b, c and 12 more"
std::string some_ids(const ResultFile& file) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < std::min(kMost, file.rows.size()); ++i) ids.push_back(file.rows[i].id);
  std::string text = fmt::format("{}", fmt::join(ids, ", "));
  if (file.rows.size() > kMost) text += fmt::format(" and {} more", file.rows.size() - kMost);
  return text;
}

}  // namespace

bool RowComparison::is_equal() const {
  return std::abs(after_us - before_us) <= kSameButForRounding * before_us;
}

ResultComparison compare_results(const ResultFile& before, const ResultFile& after) {
  ResultComparison comparison;
  if (before.rows.size() == 1 && after.rows.size() == 1) {
    comparison.rows.push_back(compare_rows(before.rows.front(), after.rows.front()));
    return comparison;
  }
  const auto rows_before = rows_by_id(before);
  const auto rows_after = rows_by_id(after);
  for (const ResultRow& row : before.rows) {
    const auto then = rows_after.find(row.id);
    if (then != rows_after.end()) {
      comparison.rows.push_back(compare_rows(row, *then->second));
    } else {
      comparison.only_before.push_back(row.id);
    }
  }
  for (const ResultRow& row : after.rows) {
    if (rows_before.count(row.id) == 0) comparison.only_after.push_back(row.id);
  }
  if (!comparison.rows.empty()) return comparison;
  throw UserError(
      fmt::format("'{}' and '{}' have no row in common: the first has {}, the second {}; give two "
                  "results of the same scenarios, patterns or steps, or of one run each",
                  before.origin, after.origin, some_ids(before), some_ids(after)));
}

std::string describe_parts(const RowComparison& row) {
  if (row.is_equal()) return {};
  const double change_us = row.after_us - row.before_us;
  // The largest parts, until four fifths of the change are told, at most three; no part that rounds to zero.
  constexpr double kMostOfIt = 0.8;
  constexpr std::size_t kMostParts = 3;
  std::vector<std::string> words;
  double told_us = 0;
  for (const PartChange& part : row.parts) {
    if (words.size() == kMostParts || told_us / change_us >= kMostOfIt) break;
    if (std::abs(part.change_us()) < 0.05) break;
    words.push_back(fmt::format("{} {:+.1f}", part.part, part.change_us()));
    told_us += part.change_us();
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string describe_change(const RowComparison& row) {
  if (row.is_equal()) return "unchanged";
  const double change_us = row.after_us - row.before_us;
  const std::string text = fmt::format("{} by {:.1f} us ({:.1f} %)", change_us > 0 ? "slower" : "faster",
                                       std::abs(change_us), 100 * std::abs(row.change()));
  const std::string parts = describe_parts(row);
  return parts.empty() ? text : fmt::format("{}: {}", text, parts);
}

}  // namespace tritax
