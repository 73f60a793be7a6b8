#include "sim/study/compared.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"
#include "model/core/quantile.hpp"

namespace tritax::embedded {
// scenarios/compared.csv; see cmake/TritaxModule.cmake.
std::span<const std::pair<std::string_view, std::string_view>> compared_table();
}  // namespace tritax::embedded

namespace tritax {

namespace {

constexpr std::size_t kMostOff = 20;  // of a line
constexpr std::int64_t kNear = 2;     // factor within which numbers count as alike
constexpr std::int64_t kMostCount = std::int64_t{1} << 40;
constexpr double kLargestOff = 1e6;

// Names that count as one.
std::string class_of(std::string name) { return name == "bf16" ? "fp16" : name; }

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

template <typename Number>
bool read_whole(std::string_view text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size();
}

std::vector<double> read_off(const CsvRow& line) {
  std::vector<double> off;
  for (const std::string_view word : words_of(line.field("off"))) {
    double value = 0;
    if (!read_whole(word, value) || !(value >= 0 && value <= kLargestOff))
      line.refuse("off", "numbers from 0 on, separated by blanks");
    off.push_back(value);
  }
  if (off.empty() || !std::is_sorted(off.begin(), off.end())) line.refuse("off", "rising numbers");
  return off;
}

// "m=512..8192" or "dtype=fp16"
std::vector<FieldRange> read_ranges(const CsvRow& line) {
  std::vector<FieldRange> ranges;
  for (const std::string_view word : words_of(line.field("problems"))) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals + 1 == word.size())
      line.refuse("problems", "field=lowest..highest or field=name, separated by blanks");
    FieldRange range;
    range.field = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    const std::size_t dots = value.find("..");
    if (dots == std::string_view::npos) {
      range.names.emplace_back(value);
    } else if (!read_whole(value.substr(0, dots), range.low) ||
               !read_whole(value.substr(dots + 2), range.high) || range.low > range.high) {
      line.refuse("problems", "two whole numbers around \"..\", the lower one first");
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

// Fields that tell whether two problems are alike: numbers except seeds, and names. Files have no range.
bool tells(const Spec& field) { return field.kind != ValueKind::file && !field.seeds; }

std::string name_at(const Values& values, std::size_t spec) { return class_of(text_of(values, spec)); }

// Comparisons with the same key make one line.
std::string key_of(const Comparison& one) {
  std::string key = fmt::format("{} {} {} {}", one.set, one.gpu, one.problem.workload->name, name_of(one.of));
  const std::span<const Spec> fields = one.problem.workload->fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (tells(fields[i]) && fields[i].kind == ValueKind::name) key += ' ' + name_at(one.problem.values, i);
  }
  return key;
}

// Adds one range per name, one per part of a shape.
void add_ranges(std::vector<FieldRange>& ranges, std::size_t field,
                const std::vector<const Comparison*>& rows) {
  const Spec& spec = rows.front()->problem.workload->fields[field];
  if (spec.kind == ValueKind::name) {
    ranges.push_back({std::string(spec.name), {name_at(rows.front()->problem.values, field)}, 0, 0});
    return;
  }
  for (std::size_t part = 0; part < spec.columns(); ++part) {
    FieldRange& range = ranges.emplace_back();
    range.field = spec.column(part);
    range.low = range.high = rows.front()->problem[range.field];
    for (const Comparison* row : rows) {
      range.low = std::min(range.low, row->problem[range.field]);
      range.high = std::max(range.high, row->problem[range.field]);
    }
  }
}

std::vector<double> thinned(const std::vector<double>& values) {
  std::vector<double> some;
  for (std::size_t i = 0; i < kMostOff; ++i)
    some.push_back(quantile(values, (static_cast<double>(i) + 0.5) / static_cast<double>(kMostOff)));
  return some;
}

ComparedSet set_of(const std::vector<const Comparison*>& rows) {
  const Comparison& first = *rows.front();
  ComparedSet set{first.set, first.gpu, std::string(first.problem.workload->name), first.of, false, 0,
                  {},        {}};
  set.count = static_cast<std::int64_t>(rows.size());
  std::vector<double> off;
  for (const Comparison* row : rows) {
    const double ratio = 1 + row->error;
    off.push_back(ratio > 0 ? std::min(std::max(ratio, 1 / ratio) - 1, kLargestOff) : kLargestOff);
  }
  std::sort(off.begin(), off.end());
  set.off = off.size() > kMostOff ? thinned(off) : off;
  const std::span<const Spec> fields = first.problem.workload->fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (tells(fields[i])) add_ranges(set.ranges, i, rows);
  }
  return set;
}

// The index of the field with the column.
std::size_t field_of(std::span<const Spec> fields, std::string_view column) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (std::size_t part = 0; part < fields[i].columns(); ++part) {
      if (fields[i].column(part) == column) return i;
    }
  }
  TRITAX_ASSERT(false, "the workload of a compared set has no such field");
}

bool near(const FieldRange& range, const Problem& problem) {
  const std::span<const Spec> fields = problem.workload->fields;
  const std::size_t field = field_of(fields, range.field);
  if (!range.names.empty()) return range.names.front() == name_at(problem.values, field);
  const std::int64_t value = problem[range.field];
  if (fields[field].counts_gpus && (value == 1 ? range.low > 1 : range.high == 1)) return false;
  const std::int64_t factor = fields[field].kind == ValueKind::boolean ? 1 : kNear;
  return value * factor >= range.low && value <= range.high * factor;
}

}  // namespace

// Some workloads compose their library of the parts of own kernels; the name marks it as a library.
Compared compared_of(const Pattern& pattern) {
  return pattern.vendor || pattern.name.starts_with("library") ? Compared::library : Compared::own;
}

Compared compared_of(const Pattern& a, const Pattern& b) {
  return compared_of(a) == compared_of(b) ? compared_of(a) : Compared::own_over_library;
}

std::vector<ComparedSet> parse_compared(std::string_view csv, const std::string& origin) {
  constexpr std::array<std::string_view, 2> switches{"false", "true"};
  std::vector<ComparedSet> sets;
  read_csv(csv, origin, "set,gpu,workload,of,blind,count,off,problems", "scripts/make-accuracy",
           [&](const CsvRow& line) {
             ComparedSet& set = sets.emplace_back();
             set.set = line.text("set");
             set.gpu = line.text("gpu");
             set.workload = line.text("workload");
             set.of = static_cast<Compared>(line.choice("of", kComparedNames));
             set.blind = line.choice("blind", switches) == 1;
             set.count = line.integer("count", 1, kMostCount);
             set.off = read_off(line);
             set.ranges = read_ranges(line);
           });
  return sets;
}

const std::vector<ComparedSet>& shipped_comparisons() {
  static const std::vector<ComparedSet> sets =
      parse_compared(embedded::compared_table().front().second, "compared.csv (shipped)");
  return sets;
}

std::vector<ComparedSet> compared_sets(const std::vector<Comparison>& comparisons) {
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<const Comparison*>> lines;
  for (const Comparison& one : comparisons) {
    const auto [place, fresh] = places.emplace(key_of(one), lines.size());
    if (fresh) lines.emplace_back();
    lines[place->second].push_back(&one);
  }
  std::vector<ComparedSet> sets;
  for (const auto& rows : lines) sets.push_back(set_of(rows));
  return sets;
}

std::string set_of_place(const std::string& where) {
  return std::filesystem::path(where.substr(0, where.rfind(':'))).stem().string();
}

std::string problems_text(const std::vector<FieldRange>& ranges) {
  std::vector<std::string> texts;
  for (const FieldRange& range : ranges) {
    texts.push_back(range.names.empty() ? fmt::format("{}={}..{}", range.field, range.low, range.high)
                                        : fmt::format("{}={}", range.field, range.names.front()));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

std::vector<const FieldRange*> outside_of(const ComparedSet& set, const Problem& problem) {
  std::vector<const FieldRange*> outside;
  for (const FieldRange& range : set.ranges) {
    if (!near(range, problem)) outside.push_back(&range);
  }
  return outside;
}

}  // namespace tritax
