#include "sim/study/trust.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/quantile.hpp"

namespace tritax {

namespace {

constexpr double kHostsDifferNs = 5.1e3;
constexpr std::size_t kSetsNamed = 3;

// Whether the range contains the problem's value of its field: a name, or a number.
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
    throw UserError(fmt::format("{}: doubt: '{}' is not a field of {} with such values; it has {}",
                                machine.file, range.field, problem.workload->name, fmt::join(names, ", ")));
  }
}

// The combined lines of the table.
struct Pool {
  std::vector<std::string_view> sets;
  std::int64_t count = 0;
  std::vector<double> off;

  void add(const ComparedSet& set) {
    if (std::find(sets.begin(), sets.end(), set.set) == sets.end()) sets.push_back(set.set);
    count += set.count;
    off.insert(off.end(), set.off.begin(), set.off.end());
  }
  bool enough() const { return count >= kFewestCompared; }
  Band band() const {
    if (!enough()) return {};
    const double share = kHeld + (1 - kHeld) / (static_cast<double>(sets.size()) + 1);
    return {quantile(off, share), static_cast<int>(sets.size()), count};
  }
  // "183 comparisons of own in h200-2-moe, h200-4-moe"
  std::string text(Compared of) const {
    const std::size_t named = std::min(sets.size(), kSetsNamed);
    std::string text =
        fmt::format("{} comparisons of {} in {}", count, name_of(of),
                    fmt::join(sets.begin(), sets.begin() + static_cast<std::ptrdiff_t>(named), ", "));
    if (named < sets.size()) text += fmt::format(" and {} more sets", sets.size() - named);
    return text;
  }
};

// The comparable lines, of blind sets alone if these are enough.
Pool comparable(const std::vector<const ComparedSet*>& similar, Compared of, const Problem& problem,
                const Machine& machine) {
  Pool blind, all;
  for (const ComparedSet* set : similar) {
    if (set->of != of || set->gpu != machine.gpu.name || !outside_of(*set, problem).empty()) continue;
    all.add(*set);
    if (set->blind) blind.add(*set);
  }
  return blind.enough() ? blind : all;
}

// "; similar questions were off by 45 % (the nearest: h200-4-moe, H200, gpus=2..4)"; "" for none.
std::string similar_text(const std::vector<const ComparedSet*>& similar, const Problem& problem,
                         const Machine& machine, const std::vector<Compared>& missing) {
  const auto is_of_these = [&](const ComparedSet* set) {
    return std::find(missing.begin(), missing.end(), set->of) != missing.end();
  };
  Pool pool;
  const ComparedSet* nearest = nullptr;
  std::size_t fewest = 0;
  for (const bool any_kind : {false, true}) {
    for (const ComparedSet* set : similar) {
      if (!any_kind && !is_of_these(set)) continue;
      pool.add(*set);
      const std::size_t apart = outside_of(*set, problem).size() + (set->gpu == machine.gpu.name ? 0 : 1);
      if (nearest != nullptr && apart >= fewest) continue;
      nearest = set;
      fewest = apart;
    }
    if (nearest != nullptr) break;
  }
  if (nearest == nullptr) return "";
  std::vector<FieldRange> outside;
  for (const FieldRange* range : outside_of(*nearest, problem)) outside.push_back(*range);
  return fmt::format("; nine of ten similar predictions were within {:.0f} % (nearest: {} of {} on {}{}{})",
                     100 * quantile(pool.off, kHeld), name_of(nearest->of), nearest->set, nearest->gpu,
                     outside.empty() ? "" : ", ", problems_text(outside));
}

// Nothing if bands exist for the times of all kinds of patterns.
std::string caution_of(const Trust& trust, const std::vector<const ComparedSet*>& similar,
                       const Problem& problem, const Machine& machine) {
  const auto has = [&](Compared kind) {
    const auto patterns = problem.workload->patterns;
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const Pattern& one) { return compared_of(one) == kind; });
  };
  const bool both = has(Compared::own) && has(Compared::library);
  if (both && trust.ratio.known()) return "";
  std::vector<Compared> missing;
  if (has(Compared::own) && !trust.own.known()) missing.push_back(Compared::own);
  if (has(Compared::library) && !trust.library.known()) missing.push_back(Compared::library);
  if (missing.empty()) return "";
  const std::string_view of = !both || missing.size() == 2       ? ""
                              : missing.front() == Compared::own ? "'s own kernels"
                                                                 : "'s library";
  return fmt::format("Nothing comparable to {}{} was measured{}.", problem.workload->name, of,
                     similar_text(similar, problem, machine, missing));
}

// A user changed the machine, or wrote a file with a base. Shipped machines are nodes, with a base too.
bool differs_from_a_node(const Machine& machine) {
  if (!machine.changes.empty()) return true;
  const std::vector<std::string> shipped = shipped_machines();
  return !machine.base.empty() && std::find(shipped.begin(), shipped.end(), machine.name) == shipped.end();
}

}  // namespace

double Band::at(double time_ns) const {
  if (!known()) return 0;
  return std::hypot(off, std::sqrt(2.0 / sets) * kHostsDifferNs / time_ns);
}

double Trust::of(const Pattern& pattern, double time_ns) const {
  return (compared_of(pattern) == Compared::library ? library : own).at(time_ns);
}

double Trust::between(const Pattern& a, double a_ns, const Pattern& b, double b_ns) const {
  const double shorter_ns = std::min(a_ns, b_ns);
  if (compared_of(a) == compared_of(b)) return of(a, shorter_ns);
  if (ratio.known()) return ratio.at(shorter_ns);
  return own.known() && library.known() ? std::hypot(of(a, a_ns), of(b, b_ns)) : 0;
}

Trust trust_of(const Problem& problem, const Machine& machine, const std::vector<ComparedSet>& compared,
               std::string_view but) {
  std::vector<const ComparedSet*> similar;
  for (const ComparedSet& set : compared) {
    if (is_called(*problem.workload, set.workload) && set.set != but) similar.push_back(&set);
  }
  Trust trust;
  std::vector<std::string> sources;
  for (const auto& [of, band] : {std::pair{Compared::own, &trust.own},
                                 {Compared::library, &trust.library},
                                 {Compared::own_over_library, &trust.ratio}}) {
    const Pool pool = comparable(similar, of, problem, machine);
    *band = pool.band();
    if (band->known()) sources.push_back(pool.text(of));
  }
  trust.source = fmt::format("{}", fmt::join(sources, "; "));
  std::string caution = caution_of(trust, similar, problem, machine);
  if (!caution.empty()) trust.cautions.push_back(std::move(caution));
  if (differs_from_a_node(machine) && !sources.empty()) {
    trust.cautions.push_back(fmt::format("The band was measured on {} without the changes.",
                                         machine.base.empty() ? machine.name : machine.base));
  }
  return trust;
}

bool is_tie(double a_ns, double b_ns, double band) {
  return std::max(a_ns, b_ns) <= (1 + band) * std::min(a_ns, b_ns);
}

std::vector<int> ranks_with_ties(const std::vector<double>& times_ns,
                                 const std::function<double(std::size_t, std::size_t)>& band) {
  std::vector<int> ranks;
  std::size_t first = 0;
  for (std::size_t i = 0; i < times_ns.size(); ++i) {
    if (!is_tie(times_ns[first], times_ns[i], band(first, i))) first = i;
    ranks.push_back(static_cast<int>(first) + 1);
  }
  return ranks;
}

const Doubt* doubt_of(const Problem& problem, std::string_view pattern, const Machine& machine) {
  for (const Doubt& doubt : machine.doubts) {
    if (!is_called(*problem.workload, doubt.workload) || doubt.pattern != pattern) continue;
    require_fields(doubt.ranges, problem, machine);
    const bool inside = std::all_of(doubt.ranges.begin(), doubt.ranges.end(),
                                    [&](const FieldRange& range) { return contains(range, problem); });
    if (inside) return &doubt;
  }
  return nullptr;
}

}  // namespace tritax
