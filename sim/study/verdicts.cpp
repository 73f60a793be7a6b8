#include "sim/study/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "model/core/error.hpp"
#include "model/workload/parse_value.hpp"

namespace tritax {

namespace {

bool is_rate(std::string_view metric) {
  return metric == "throughput" || metric == "bandwidth" || metric == "link-bandwidth";
}

// Time of the second way over the time of the first. `metric` may be a speedup, which has one number.
double ratio_of(std::string_view metric, double first, double second) {
  return is_rate(metric) ? first / second : second / first;
}

using RowsById = std::map<std::string, const ReproducedRow*>;

void fill_from_one(JudgedQuestion& verdict, const ReproducedRow& row) {
  verdict.unit = row.unit;
  verdict.published_ratio = row.published;
  verdict.predicted_ratio = row.predicted;
}

void fill_from_two(JudgedQuestion& verdict, const ReproducedRow& first, const ReproducedRow& second) {
  verdict.unit = first.unit;
  verdict.published_first = first.published;
  verdict.published_second = second.published;
  verdict.published_ratio = ratio_of(first.metric, first.published, second.published);
  verdict.predicted_first = first.predicted;
  verdict.predicted_second = second.predicted;
  if (!first.predicted || !second.predicted) return;
  if (*first.predicted <= 0 || *second.predicted <= 0) {
    verdict.failure = fmt::format("predicted {} and {} {}: no two times to hold against each other",
                                  *first.predicted, *second.predicted, verdict.unit);
    return;
  }
  verdict.predicted_ratio = ratio_of(first.metric, *first.predicted, *second.predicted);
}

JudgedQuestion verdict_of(const VerdictQuestion& question, const std::vector<const ReproducedRow*>& rows) {
  JudgedQuestion verdict;
  verdict.id = question.id;
  verdict.family = question.family;
  verdict.first = question.names.at(0);
  verdict.second = question.names.at(1);
  verdict.source = question.source.empty() ? rows.front()->source : question.source;
  verdict.notes = question.notes;
  if (rows.size() == 1) {
    fill_from_one(verdict, *rows.front());
  } else {
    fill_from_two(verdict, *rows[0], *rows[1]);
  }
  for (const ReproducedRow* row : rows) {
    verdict.calibration = verdict.calibration || row->calibration;
    if (!row->failure.empty()) verdict.failure = row->failure;
  }
  judge(verdict);
  return verdict;
}

}  // namespace

double lead_of(double ratio) { return std::max(ratio, 1 / ratio) - 1; }

void judge(JudgedQuestion& verdict) {
  verdict.outcome = VerdictOutcome::failed;
  verdict.cost = 0;
  verdict.says_it_pays = verdict.pays_but_loses = false;
  if (!verdict.predicted_ratio) return;
  const double published = verdict.published_ratio;
  const double predicted = *verdict.predicted_ratio;
  const bool same = (published > 1) == (predicted > 1);
  const bool tied = lead_of(published) <= kTieDifference || lead_of(predicted) <= kTieDifference;
  verdict.outcome = tied ? VerdictOutcome::tie : same ? VerdictOutcome::right : VerdictOutcome::wrong;
  verdict.cost = same ? 0 : lead_of(published);
  verdict.says_it_pays = predicted > 1 && lead_of(predicted) > kTieDifference;
  verdict.pays_but_loses = verdict.says_it_pays && published < 1 && lead_of(published) > kClearDifference;
}

std::vector<JudgedQuestion> verdicts_of(const std::vector<VerdictQuestion>& questions,
                                        const std::vector<ReproducedRow>& rows) {
  RowsById by_id;
  for (const ReproducedRow& row : rows) by_id.emplace(row.id, &row);
  std::vector<JudgedQuestion> verdicts;
  for (const VerdictQuestion& question : questions) {
    std::vector<const ReproducedRow*> named;
    for (const std::string& id : question.rows) {
      const auto found = by_id.find(id);
      if (found != by_id.end()) named.push_back(found->second);
    }
    if (named.size() == question.rows.size()) verdicts.push_back(verdict_of(question, named));
  }
  return verdicts;
}

Reproduced reproduce(const PublishedNumbers& numbers, const ReproduceOptions& options) {
  std::vector<PublishedEntry> entries = numbers.entries;
  for (const VerdictQuestion& question : numbers.verdicts) {
    entries.insert(entries.end(), question.own.begin(), question.own.end());
  }
  Reproduced all;
  all.rows = reproduce(entries, options);
  all.verdicts = verdicts_of(numbers.verdicts, all.rows);
  std::set<std::string> own;
  for (const VerdictQuestion& question : numbers.verdicts) {
    for (const PublishedEntry& entry : question.own) own.insert(entry.id);
  }
  const auto first_own = std::stable_partition(all.rows.begin(), all.rows.end(),
                                               [&own](const auto& row) { return own.count(row.id) == 0; });
  all.rows_of_questions.assign(std::make_move_iterator(first_own), std::make_move_iterator(all.rows.end()));
  all.rows.erase(first_own, all.rows.end());
  return all;
}

void keep_group(PublishedNumbers& numbers, const std::string& group, const std::string& option) {
  std::vector<std::string_view> groups;
  for (const PublishedEntry& entry : numbers.entries) {
    if (std::find(groups.begin(), groups.end(), entry.group) == groups.end()) groups.push_back(entry.group);
  }
  if (!numbers.verdicts.empty()) groups.push_back(kVerdictGroup);
  const std::string wanted(groups[parse_name(group, option, groups)]);
  std::set<std::string> named;
  for (const VerdictQuestion& question : numbers.verdicts) {
    named.insert(question.rows.begin(), question.rows.end());
  }
  const bool verdicts = wanted == kVerdictGroup && !numbers.verdicts.empty();
  std::vector<PublishedEntry> kept;
  std::copy_if(numbers.entries.begin(), numbers.entries.end(), std::back_inserter(kept),
               [&](const PublishedEntry& entry) {
                 return verdicts ? named.count(entry.id) > 0 : entry.group == wanted;
               });
  numbers.entries = std::move(kept);
  if (!verdicts) numbers.verdicts.clear();
}

PublishedNumbers wanted_numbers(const std::vector<std::string>& paths,
                                const std::optional<std::string>& group, const std::string& option) {
  PublishedNumbers numbers = published_numbers(paths);
  if (group) {
    keep_group(numbers, *group, option);
  } else if (paths.empty()) {
    numbers.verdicts.clear();
  }
  return numbers;
}

Score score_of(const std::string& family, const std::vector<JudgedQuestion>& verdicts) {
  Score score;
  score.family = family;
  score.questions = verdicts.size();
  for (const JudgedQuestion& verdict : verdicts) {
    score.right += verdict.outcome == VerdictOutcome::right;
    score.tie += verdict.outcome == VerdictOutcome::tie;
    score.wrong += verdict.outcome == VerdictOutcome::wrong;
    score.failed += verdict.outcome == VerdictOutcome::failed;
    const bool clear = lead_of(verdict.published_ratio) > kClearDifference;
    score.clear += clear;
    score.clear_right += clear && verdict.outcome == VerdictOutcome::right;
    score.clear_right_or_tie +=
        clear && (verdict.outcome == VerdictOutcome::right || verdict.outcome == VerdictOutcome::tie);
    score.says_it_pays += verdict.says_it_pays;
    score.pays_but_loses += verdict.pays_but_loses;
    score.mean_cost += verdict.cost;
    score.worst_cost = std::max(score.worst_cost, verdict.cost);
  }
  const std::size_t answered = score.questions - score.failed;
  if (answered > 0) score.mean_cost /= static_cast<double>(answered);
  return score;
}

std::vector<Score> scores_by_family(const std::vector<JudgedQuestion>& verdicts) {
  std::vector<std::string> families;
  std::map<std::string, std::vector<JudgedQuestion>> members;
  for (const JudgedQuestion& verdict : verdicts) {
    auto& list = members[verdict.family];
    if (list.empty()) families.push_back(verdict.family);
    list.push_back(verdict);
  }
  std::vector<Score> scores;
  for (const std::string& family : families) scores.push_back(score_of(family, members.at(family)));
  return scores;
}

}  // namespace tritax
