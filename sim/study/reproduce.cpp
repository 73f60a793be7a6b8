#include "sim/study/reproduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "model/core/error.hpp"
#include "model/core/quantile.hpp"

namespace tritax {

namespace {

// One simulation, shared by all entries that need it.
struct Job {
  Scenario scenario;
  const Machine* machine = nullptr;
  bool back_to_back = false;
  std::optional<Prediction> prediction;
  std::string failure;
};

// The simulations of one variant of an entry.
struct VariantJobs {
  std::vector<std::size_t> alternatives;  // the fastest counts
  std::optional<std::size_t> reference;
};

class JobList {
 public:
  VariantJobs add(const PublishedEntry& entry, std::size_t variant) {
    const Scenario& scenario = entry.scenarios[variant];
    const bool back_to_back = runs_back_to_back(scenario, entry.clock);
    VariantJobs jobs;
    if (entry.metric == Metric::best_speedup) {
      const Workload& workload = *scenario.problem.workload;
      for (const Pattern& pattern : workload.patterns) {
        Scenario one = scenario;
        one.pattern = pattern.name;
        if (pattern.name == workload.baseline) {
          if (!entry.references.empty()) one.knobs = entry.references[variant].knobs;
          jobs.reference = add(std::move(one), back_to_back);
        } else {
          jobs.alternatives.push_back(add(std::move(one), back_to_back));
        }
      }
      return jobs;
    }
    jobs.alternatives.push_back(add(scenario, back_to_back));
    if (!entry.references.empty())
      jobs.reference =
          add(entry.references[variant], runs_back_to_back(entry.references[variant], entry.clock));
    return jobs;
  }

  const Machine& machine(const Scenario& scenario) {
    const auto found = machines_.find(scenario.machine);
    if (found != machines_.end()) return found->second;
    return machines_.emplace(scenario.machine, find_machine_of(scenario)).first->second;
  }

  std::vector<Job>& jobs() { return jobs_; }

 private:
  std::size_t add(Scenario scenario, bool back_to_back) {
    const auto [place, fresh] = index_.emplace(std::pair{scenario_key(scenario), back_to_back}, jobs_.size());
    if (fresh) {
      const Machine& its_machine = machine(scenario);
      jobs_.push_back({std::move(scenario), &its_machine, back_to_back, std::nullopt, {}});
    }
    return place->second;
  }

  std::map<std::string, Machine> machines_;  // nodes of the map do not move; jobs point to them
  std::map<std::pair<std::string, bool>, std::size_t> index_;
  std::vector<Job> jobs_;
};

void run(std::vector<Job>& jobs, const ReproduceOptions& options) {
  const std::vector<TaskOutcome> outcomes = in_parallel(jobs.size(), options, [&](std::size_t i) {
    jobs[i].prediction = predict(jobs[i].scenario, *jobs[i].machine, jobs[i].back_to_back);
  });
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].failure = outcomes[i].failure;
}

double fastest_ns_of(const PublishedEntry& entry, const VariantJobs& variant, const std::vector<Job>& jobs) {
  double fastest_ns = jobs[variant.alternatives.front()].prediction->time_ns(entry.clock);
  for (const std::size_t job : variant.alternatives)
    fastest_ns = std::min(fastest_ns, jobs[job].prediction->time_ns(entry.clock));
  return fastest_ns;
}

// Value of one variant in the units of Prediction.
double value_of(const PublishedEntry& entry, const VariantJobs& variant, const std::vector<Job>& jobs) {
  const auto time_ns = [&](std::size_t job) { return jobs[job].prediction->time_ns(entry.clock); };
  const double fastest_ns = fastest_ns_of(entry, variant, jobs);
  switch (entry.metric) {
    case Metric::speedup:
    case Metric::best_speedup:
      return time_ns(*variant.reference) / fastest_ns;
    case Metric::time_difference:
      return fastest_ns - time_ns(*variant.reference);
    default:
      return jobs[variant.alternatives.front()].prediction->value(entry.metric, entry.clock);
  }
}

double aggregate(Aggregate how, const std::vector<double>& values) {
  if (how == Aggregate::min) return *std::min_element(values.begin(), values.end());
  if (how == Aggregate::max) return *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Whether the id stands in `serves` of a parameter of the machine.
bool served(const PublishedEntry& entry, const Machine& machine) {
  for (const Parameter& parameter : machine.parameters) {
    std::istringstream ids(parameter.serves);
    for (std::string id; ids >> id;) {
      if (id == entry.id) return true;
    }
  }
  return false;
}

ReproducedRow row_of(const PublishedEntry& entry) {
  ReproducedRow row;
  row.id = entry.id;
  row.group = entry.group;
  row.metric = kMetricNames[static_cast<std::size_t>(entry.metric)];
  row.unit = entry.unit;
  row.low = entry.low;
  row.high = entry.high;
  row.bound = !entry.value && !(entry.low && entry.high);
  row.source = entry.source;
  row.confidence = entry.confidence;
  row.chosen = entry.chosen;
  row.notes = entry.notes;
  if (entry.value) {
    row.published = *entry.value;
  } else if (row.bound) {
    row.published = entry.low ? *entry.low : *entry.high;
  } else {
    row.published = (*entry.low + *entry.high) / 2;
  }
  return row;
}

void judge(ReproducedRow& row, double predicted) {
  row.predicted = predicted;
  const bool above = !row.low || predicted >= *row.low;
  const bool below = !row.high || predicted <= *row.high;
  row.within_published_range = (row.low || row.high) && above && below;
  row.error = row.bound && row.within_published_range ? 0 : (predicted - row.published) / row.published;
}

// Sets the error of the difference between a time, predicted as `time_ns`, and another time.
void judge_time(ReproducedRow& row, double time_ns, double unit_scale) {
  const double implied_ns = time_ns + (row.published - *row.predicted) * unit_scale;
  if (implied_ns > 0) row.error_of_time = time_ns / implied_ns - 1;
}

// Sets the prediction of a row. Returns false if one of its simulations was left out.
bool fill(ReproducedRow& row, const PublishedEntry& entry, const std::vector<VariantJobs>& variants,
          const std::vector<Job>& jobs) {
  for (const VariantJobs& variant : variants) {
    std::vector<std::size_t> needed = variant.alternatives;
    if (variant.reference) needed.push_back(*variant.reference);
    for (const std::size_t job : needed) {
      if (jobs[job].prediction) continue;
      if (jobs[job].failure.empty()) return false;
      row.failure = jobs[job].failure;
      return true;
    }
  }
  std::vector<double> values;
  for (const VariantJobs& variant : variants) values.push_back(value_of(entry, variant, jobs));
  judge(row, aggregate(entry.aggregate, values) / entry.unit_scale);
  if (entry.metric == Metric::time_difference && variants.size() == 1)
    judge_time(row, fastest_ns_of(entry, variants.front(), jobs), entry.unit_scale);
  return true;
}

void require_different_ids(const std::vector<PublishedEntry>& entries) {
  std::map<std::string, std::string> places;
  for (const PublishedEntry& entry : entries) {
    const auto [place, fresh] = places.emplace(entry.id, entry.where);
    if (!fresh) {
      throw UserError(fmt::format("{}: id \"{}\" is already used at {}; ids must differ", entry.where,
                                  entry.id, place->second));
    }
  }
}

void require_caches(const PublishedEntry& entry, const Machine& machine) {
  if (entry.metric != Metric::llc_hit || machine.gpu.llc_bytes > 0) return;
  throw UserError(
      fmt::format("{}: metric = \"llc-hit\" is not allowed on {}, which has no last-level cache behind its "
                  "L2; use l2-hit",
                  entry.where, machine.name));
}

}  // namespace

std::vector<ReproducedRow> reproduce(const std::vector<PublishedEntry>& entries,
                                     const ReproduceOptions& options) {
  require_different_ids(entries);
  JobList list;
  std::vector<std::vector<VariantJobs>> jobs_of_entry;
  for (const PublishedEntry& entry : entries) {
    auto& variants = jobs_of_entry.emplace_back();
    for (std::size_t i = 0; i < entry.scenarios.size(); ++i) {
      require_caches(entry, list.machine(entry.scenarios[i]));
      variants.push_back(list.add(entry, i));
    }
  }
  run(list.jobs(), options);
  std::vector<ReproducedRow> rows;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    ReproducedRow row = row_of(entries[i]);
    row.calibration =
        !entries[i].chosen.empty() ||
        std::any_of(entries[i].scenarios.begin(), entries[i].scenarios.end(),
                    [&](const Scenario& scenario) { return served(entries[i], list.machine(scenario)); });
    if (fill(row, entries[i], jobs_of_entry[i], list.jobs())) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<GroupSummary> summarise(const std::vector<ReproducedRow>& rows) {
  std::vector<GroupSummary> groups;
  std::vector<std::vector<double>> errors;
  for (const ReproducedRow& row : rows) {
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.group == row.group; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), GroupSummary{});
      group->group = row.group;
      errors.emplace_back();
    }
    if (!row.predicted) {
      ++group->failed;
    } else if (row.calibration) {
      ++group->calibration;
    } else if (!row.bound || *row.error != 0) {
      errors[static_cast<std::size_t>(group - groups.begin())].push_back(std::abs(*row.error));
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<double>& list = errors[i];
    groups[i].predictions = list.size();
    if (list.empty()) continue;
    groups[i].worst_error = *std::max_element(list.begin(), list.end());
    groups[i].median_error = quantile(std::move(list), 0.5);
  }
  return groups;
}

}  // namespace tritax
