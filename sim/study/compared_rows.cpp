#include "sim/study/compared_rows.hpp"

#include <map>
#include <optional>
#include <string>

#include "model/schedule/schedule.hpp"

namespace tritax {

namespace {

template <typename T>
std::map<std::string_view, const T*> by_id(const std::vector<T>& all) {
  std::map<std::string_view, const T*> places;
  for (const T& one : all) places.emplace(one.id, &one);
  return places;
}

bool has_the_usual_lock(const Scenario& scenario) {
  return !scenario.knobs.has("lock") ||
         static_cast<LockProtocol>(scenario.knobs["lock"]) == LockProtocol::load_store;
}

// Nothing if no time is compared.
std::optional<Compared> kind_of(const PublishedEntry& entry, std::size_t variant) {
  const Scenario& scenario = entry.scenarios[variant];
  if (!has_the_usual_lock(scenario)) return std::nullopt;
  switch (entry.metric) {
    case Metric::l2_hit:
    case Metric::llc_hit:
    case Metric::hbm_bytes:
      return std::nullopt;
    case Metric::best_speedup: {  // of the fastest other pattern
      const Workload& workload = *scenario.problem.workload;
      const bool library = compared_of(*baseline_of(workload)) == Compared::library;
      return library ? Compared::own_over_library : Compared::own;
    }
    case Metric::speedup:
      return compared_of(pattern_of(scenario), pattern_of(entry.references[variant]));
    default:
      return compared_of(pattern_of(scenario));
  }
}

// Names of GPUs by machine; each machine is read once.
class Gpus {
 public:
  const std::string& of(const Scenario& scenario) {
    const auto found = names_.find(scenario.machine);
    if (found != names_.end()) return found->second;
    return names_.emplace(scenario.machine, find_machine_of(scenario).gpu.name).first->second;
  }

 private:
  std::map<std::string, std::string> names_;
};

void add_row(std::vector<Comparison>& comparisons, const ReproducedRow& row, const PublishedEntry& entry,
             Gpus& gpus) {
  if (row.calibration || row.bound || !row.error) return;
  const double error = row.error_of_time.value_or(*row.error);
  for (std::size_t i = 0; i < entry.scenarios.size(); ++i) {
    const Scenario& scenario = entry.scenarios[i];
    const std::optional<Compared> of = kind_of(entry, i);
    if (!of) continue;
    comparisons.push_back({"published " + row.group, gpus.of(scenario), scenario.problem, *of, error});
  }
}

// Adds the ratio of two ways with times of their own; nothing if both are of one kind.
void add_ratio(std::vector<Comparison>& comparisons, const JudgedQuestion& question,
               const PublishedEntry& first, const PublishedEntry& second, Gpus& gpus) {
  if (question.calibration || !question.predicted_ratio || first.metric == Metric::time_difference) return;
  const Scenario& a = first.scenarios.front();
  const Scenario& b = second.scenarios.front();
  if (!has_the_usual_lock(a) || !has_the_usual_lock(b)) return;
  if (compared_of(pattern_of(a), pattern_of(b)) != Compared::own_over_library) return;
  comparisons.push_back({"published " + std::string(kVerdictGroup), gpus.of(a), a.problem,
                         Compared::own_over_library,
                         *question.predicted_ratio / question.published_ratio - 1});
}

}  // namespace

std::vector<Comparison> comparisons_of_rows(const std::vector<ReproducedRow>& rows,
                                            const std::vector<PublishedEntry>& entries) {
  const auto entry_of = by_id(entries);
  Gpus gpus;
  std::vector<Comparison> comparisons;
  for (const ReproducedRow& row : rows) add_row(comparisons, row, *entry_of.at(row.id), gpus);
  return comparisons;
}

std::vector<Comparison> comparisons_of_questions(const Reproduced& all, const PublishedNumbers& numbers) {
  const auto judged = by_id(all.verdicts);
  const auto own_row = by_id(all.rows_of_questions);
  const auto shared = by_id(numbers.entries);
  Gpus gpus;
  std::vector<Comparison> comparisons;
  for (const VerdictQuestion& question : numbers.verdicts) {
    if (judged.count(question.id) == 0) continue;  // an interrupted run
    const auto own = by_id(question.own);
    for (const auto& [id, entry] : own) add_row(comparisons, *own_row.at(id), *entry, gpus);
    if (question.rows.size() != 2) continue;
    const auto entry_of = [&](const std::string& id) -> const PublishedEntry& {
      return own.empty() ? *shared.at(id) : *own.at(id);
    };
    add_ratio(comparisons, *judged.at(question.id), entry_of(question.rows[0]), entry_of(question.rows[1]),
              gpus);
  }
  return comparisons;
}

}  // namespace tritax
