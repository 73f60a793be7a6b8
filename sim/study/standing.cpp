#include "sim/study/standing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/core/quantile.hpp"

namespace tritax {

namespace {

constexpr double kTwoOfThree = 2.0 / 3;

// What the problem has for a field: the name, or the number.
bool contains(const FieldRange& range, const Problem& problem) {
  if (range.names.empty()) return problem[range.field] >= range.low && problem[range.field] <= range.high;
  const std::span<const Spec> specs = problem.values.specs();
  const auto index = static_cast<std::size_t>(find_spec(specs, range.field) - specs.data());
  const std::string value = text_of(problem.values, index);
  return std::find(range.names.begin(), range.names.end(), value) != range.names.end();
}

void require_fields(const std::vector<FieldRange>& ranges, const Problem& problem, const Machine& machine) {
  for (const FieldRange& range : ranges) {
    const Spec* spec = find_spec(problem.values.specs(), range.field);
    if (spec != nullptr && spec->columns() == 1 && (spec->kind == ValueKind::name) == !range.names.empty())
      continue;
    std::vector<std::string_view> names;
    for (const Spec& one : problem.values.specs()) names.push_back(one.name);
    throw UserError(fmt::format("{}: compared: '{}' is no field of {} with such values; it has {}",
                                machine.file, range.field, problem.workload->name, fmt::join(names, ", ")));
  }
}

std::string describe(const FieldRange& range) {
  if (!range.names.empty()) return fmt::format("{} {}", range.field, fmt::join(range.names, ", "));
  return range.low == range.high ? fmt::format("{} {}", range.field, range.low)
                                 : fmt::format("{} {} to {}", range.field, range.low, range.high);
}

// The ranges that the problem lies outside of.
std::vector<const FieldRange*> outside_of(const ComparedSet& set, const Problem& problem) {
  std::vector<const FieldRange*> outside;
  for (const FieldRange& range : set.ranges) {
    if (!contains(range, problem)) outside.push_back(&range);
  }
  return outside;
}

std::string outside_sentence(const std::vector<const FieldRange*>& outside, const ComparedSet& set,
                             const Machine& machine) {
  std::vector<std::string> texts;
  for (const FieldRange* range : outside) texts.push_back(describe(*range));
  return fmt::format("Nothing like it was ever compared: the {} predictions of {} on {} that were have {}.",
                     set.count, set.workload, machine.name, fmt::join(texts, "; "));
}

FieldRange range_over(const Spec& spec, std::size_t index, const std::vector<const Comparison*>& rows) {
  FieldRange range;
  range.field = spec.name;
  for (const Comparison* row : rows) {
    const Values& values = row->problem.values;
    if (spec.kind == ValueKind::name) {
      range.names.push_back(text_of(values, index));
      continue;
    }
    const std::int64_t value = values.at(values.first_column(index));
    range.low = row == rows.front() ? value : std::min(range.low, value);
    range.high = row == rows.front() ? value : std::max(range.high, value);
  }
  std::sort(range.names.begin(), range.names.end());
  range.names.erase(std::unique(range.names.begin(), range.names.end()), range.names.end());
  return range;
}

ComparedSet set_of(const std::vector<const Comparison*>& rows) {
  const Workload& workload = *rows.front()->problem.workload;
  ComparedSet set;
  set.workload = workload.name;
  set.count = static_cast<std::int64_t>(rows.size());
  std::vector<double> errors;
  for (const Comparison* row : rows) errors.push_back(std::abs(row->error));
  set.residual = quantile(errors, kTwoOfThree);
  for (std::size_t i = 0; i < workload.fields.size(); ++i) {
    const Spec& field = workload.fields[i];
    const bool tells = field.required || field.counts_gpus || field.kind == ValueKind::name;
    if (tells && field.columns() == 1) set.ranges.push_back(range_over(field, i, rows));
  }
  return set;
}

}  // namespace

Standing standing_of(const Problem& problem, const Machine& machine) {
  Standing standing;
  const ComparedSet* nearest = nullptr;
  std::vector<const FieldRange*> outside;
  for (const ComparedSet& set : machine.compared) {
    if (set.workload != problem.workload->name) continue;
    require_fields(set.ranges, problem, machine);
    std::vector<const FieldRange*> missed = outside_of(set, problem);
    if (nearest != nullptr && missed.size() >= outside.size()) continue;
    nearest = &set;
    outside = std::move(missed);
  }
  if (nearest == nullptr) {
    standing.cautions.push_back(fmt::format("No prediction of {} on {} was ever compared with a measurement.",
                                            problem.workload->name, machine.name));
    standing.residual = machine.prediction_residual;
    standing.source = "prediction_residual of the machine file";
    return standing;
  }
  standing.residual = nearest->residual;
  standing.source = nearest->source;
  if (!outside.empty()) standing.cautions.push_back(outside_sentence(outside, *nearest, machine));
  const bool differs = !machine.changes.empty() || !machine.base.empty();
  if (differs) {
    standing.cautions.push_back(fmt::format("What was compared is {} without the changes.",
                                            machine.base.empty() ? machine.name : machine.base));
  }
  return standing;
}

bool is_tie(double a_ns, double b_ns, double residual) {
  return std::max(a_ns, b_ns) <= (1 + residual) * std::min(a_ns, b_ns);
}

std::vector<int> ranks_with_ties(const std::vector<double>& times_ns, double residual) {
  std::vector<int> ranks;
  std::size_t first = 0;
  for (std::size_t i = 0; i < times_ns.size(); ++i) {
    if (!is_tie(times_ns[first], times_ns[i], residual)) first = i;
    ranks.push_back(static_cast<int>(first) + 1);
  }
  return ranks;
}

const Doubt* doubt_of(const Problem& problem, std::string_view pattern, const Machine& machine) {
  for (const Doubt& doubt : machine.doubts) {
    if (doubt.workload != problem.workload->name || doubt.pattern != pattern) continue;
    require_fields(doubt.ranges, problem, machine);
    const bool inside = std::all_of(doubt.ranges.begin(), doubt.ranges.end(),
                                    [&](const FieldRange& range) { return contains(range, problem); });
    if (inside) return &doubt;
  }
  return nullptr;
}

std::vector<MachineComparisons> compared_sets(const std::vector<Comparison>& comparisons) {
  std::vector<std::vector<const Comparison*>> groups;
  for (const Comparison& one : comparisons) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.front()->machine == one.machine && group.front()->problem.workload == one.problem.workload;
    });
    if (same == groups.end()) {
      groups.push_back({&one});
    } else {
      same->push_back(&one);
    }
  }
  std::vector<MachineComparisons> sets;
  for (const auto& group : groups) sets.push_back({group.front()->machine, set_of(group)});
  return sets;
}

}  // namespace tritax
