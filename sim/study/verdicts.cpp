#include "sim/study/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

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

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.3g}", *ratio) : "-";
}

std::string percent_of(std::size_t part, std::size_t all) {
  return all == 0 ? "-" : fmt::format("{:.0f}", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

constexpr unsigned kData = shown::kJson | shown::kRow;  // of programs, with all digits
constexpr unsigned kDataAndCsv = kData | shown::kCsv;

Fields<JudgedQuestion> question_part() {
  return {
      {{.name = "id",
        .type = FieldType::text,
        .meaning = "name of the question",
        .shows = kDataAndCsv | shown::kText},
       &JudgedQuestion::id},
      {{.name = "family", .type = FieldType::text, .meaning = "what is compared", .shows = kDataAndCsv},
       &JudgedQuestion::family},
      {{.name = "first",
        .type = FieldType::text,
        .meaning = "the way that has to be built or chosen",
        .shows = kDataAndCsv | shown::kText},
       &JudgedQuestion::first},
      {{.name = "second",
        .type = FieldType::text,
        .meaning = "the way that exists already",
        .shows = kDataAndCsv | shown::kText},
       &JudgedQuestion::second},
      {{.name = "unit",
        .type = FieldType::text,
        .meaning = "of the two published and the two predicted numbers",
        .shows = kDataAndCsv},
       &JudgedQuestion::unit},
  };
}

Fields<JudgedQuestion> number_part() {
  const auto number = [](std::string_view name, std::string_view meaning, auto member) {
    return Field<JudgedQuestion>{{.name = name, .meaning = meaning, .shows = kDataAndCsv, .nullable = true},
                                 member};
  };
  return {
      number("published_first", "of the first way; none where only the ratio was published",
             &JudgedQuestion::published_first),
      number("published_second", "of the second way; none where only the ratio was published",
             &JudgedQuestion::published_second),
      number("predicted_first", "of the first way; none without a prediction",
             &JudgedQuestion::predicted_first),
      number("predicted_second", "of the second way; none without a prediction",
             &JudgedQuestion::predicted_second),
      {{.name = "published_ratio",
        .meaning = "time of the second way per time of the first; above 1 the first is faster",
        .shows = kDataAndCsv},
       &JudgedQuestion::published_ratio},
      number("predicted_ratio", "the same, predicted; none where a simulation failed",
             &JudgedQuestion::predicted_ratio),
      {{.name = "published",
        .type = FieldType::text,
        .meaning = "time of the second way per time of the first",
        .shows = shown::kText},
       [](const JudgedQuestion& one) { return ratio_text(one.published_ratio); }},
      {{.name = "predicted",
        .type = FieldType::text,
        .meaning = "the same, predicted",
        .shows = shown::kText},
       [](const JudgedQuestion& one) { return ratio_text(one.predicted_ratio); }},
  };
}

Fields<JudgedQuestion> outcome_part() {
  return {
      {{.name = "verdict",
        .type = FieldType::text,
        .meaning = "whether the prediction names the faster way",
        .shows = kDataAndCsv | shown::kText},
       [](const JudgedQuestion& one) { return kVerdictOutcomeNames[static_cast<std::size_t>(one.outcome)]; }},
      {{.name = "cost",
        .meaning = "extra time of the way that is predicted to be faster, by the published times",
        .shows = kDataAndCsv},
       &JudgedQuestion::cost},
      {{.name = "cost",
        .unit = FieldUnit::percent,
        .meaning = "extra time of the way that is predicted to be faster, by the published times",
        .shows = shown::kText},
       [](const JudgedQuestion& one) { return one.cost > 0 ? FieldValue(100 * one.cost) : FieldValue(); }},
      {{.name = "says_it_pays",
        .type = FieldType::yes_no,
        .meaning = "the first way is predicted to be faster, by more than a tie",
        .shows = kData},
       &JudgedQuestion::says_it_pays},
      {{.name = "pays_but_loses",
        .type = FieldType::yes_no,
        .meaning = "says that it pays, and the first way is clearly slower",
        .shows = kDataAndCsv},
       &JudgedQuestion::pays_but_loses},
      {{.name = "calibration",
        .type = FieldType::yes_no,
        .meaning = "one of the numbers helped to set a parameter or to choose knobs",
        .shows = kDataAndCsv},
       &JudgedQuestion::calibration},
      {{.name = "mark",
        .type = FieldType::text,
        .meaning = "whether the first way pays but loses, or one of the numbers is no prediction",
        .shows = shown::kText},
       [](const JudgedQuestion& one) {
         return one.pays_but_loses ? "pays, but loses" : one.calibration ? "calibration" : "";
       }},
  };
}

Fields<JudgedQuestion> origin_part() {
  return {
      {{.name = "source",
        .type = FieldType::text,
        .meaning = "who published the numbers",
        .shows = kDataAndCsv},
       &JudgedQuestion::source},
      {{.name = "notes", .type = FieldType::text, .meaning = "what is known of the question", .shows = kData},
       &JudgedQuestion::notes},
      {{.name = "failure",
        .type = FieldType::text,
        .meaning = "why there is no prediction",
        .shows = shown::kCsv | shown::kRow},
       &JudgedQuestion::failure},
      {{.name = "failure",
        .type = FieldType::text,
        .meaning = "why there is no prediction",
        .shows = shown::kJson,
        .optional = true},
       [](const JudgedQuestion& one) {
         return one.failure.empty() ? FieldValue() : FieldValue(one.failure);
       }},
  };
}

Field<Score> count_of(std::string_view name, std::string_view meaning, std::size_t Score::*member,
                      unsigned shows = kData | shown::kText, std::string title = "") {
  return {
      {.name = name, .type = FieldType::size, .meaning = meaning, .shows = shows, .title = std::move(title)},
      member};
}

Field<Score> share_of_clear(std::string_view name, std::string_view meaning, std::size_t Score::*member,
                            std::string title) {
  return {{.name = name,
           .unit = FieldUnit::percent,
           .type = FieldType::text,
           .meaning = meaning,
           .shows = shown::kText,
           .title = std::move(title)},
          [member](const Score& score) { return percent_of(score.*member, score.clear); }};
}

Fields<Score> cost_fields() {
  return {
      {{.name = "mean_cost",
        .unit = FieldUnit::percent,
        .meaning = "mean extra time of the predicted choice",
        .shows = shown::kText},
       [](const Score& score) { return 100 * score.mean_cost; }},
      {{.name = "mean_cost",
        .meaning = "mean extra time of the predicted choice, over all questions with a prediction",
        .shows = kData},
       &Score::mean_cost},
      {{.name = "worst_cost", .meaning = "largest extra time of the predicted choice", .shows = kData},
       &Score::worst_cost},
  };
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

std::string sentences_of(const Score& score) {
  return fmt::format(
             "{} questions, which of two ways is faster: {} right, {} tie, {} wrong, {} without a "
             "prediction.\n"
             "Where the published times differ by more than {:.0f} %: {} % right or tie, {} % right (of "
             "{}).\n",
             score.questions, score.right, score.tie, score.wrong, score.failed, 100 * kClearDifference,
             percent_of(score.clear_right_or_tie, score.clear), percent_of(score.clear_right, score.clear),
             score.clear) +
         fmt::format(
             "\"It pays\" where it loses by more than {:.0f} %: {} % of the questions ({} of {} such "
             "verdicts).\n"
             "The predicted choice takes {:.1f} % longer than the better one on average, {:.0f} % at worst.\n"
             "A tie is a difference of at most {:.0f} %, published or predicted.\n",
             100 * kClearDifference, percent_of(score.pays_but_loses, score.questions), score.pays_but_loses,
             score.says_it_pays, 100 * score.mean_cost, 100 * score.worst_cost, 100 * kTieDifference);
}

const Fields<JudgedQuestion>& verdict_fields() {
  static const Fields<JudgedQuestion> fields = [] {
    Fields<JudgedQuestion> all = question_part();
    append(all, number_part());
    append(all, outcome_part());
    append(all, origin_part());
    return all;
  }();
  return fields;
}

const Fields<Score>& score_fields() {
  static const Fields<Score> fields = [] {
    Fields<Score> all{
        {{.name = "family",
          .type = FieldType::text,
          .meaning = "whose questions are counted",
          .shows = kData | shown::kText},
         &Score::family},
        count_of("questions", "how many there are", &Score::questions),
        count_of("right", "the prediction names the faster way", &Score::right),
        count_of("tie", "one of the differences is too small to name a faster way", &Score::tie),
        count_of("wrong", "the prediction names the slower way", &Score::wrong),
        count_of("failed", "without a prediction", &Score::failed),
        count_of("clear", "with clearly different published times", &Score::clear),
        share_of_clear("clear_right_or_tie", "of the clear questions, right or tie",
                       &Score::clear_right_or_tie, "right or tie of these"),
        share_of_clear("clear_right", "of the clear questions, right", &Score::clear_right, "right of these"),
        count_of("clear_right", "of the clear questions, right", &Score::clear_right, kData),
        count_of("clear_right_or_tie", "of the clear questions, right or tie", &Score::clear_right_or_tie,
                 kData),
        count_of("says_it_pays", "the first way is predicted to be faster, by more than a tie",
                 &Score::says_it_pays, kData),
        count_of("pays_but_loses", "of these, the first way is clearly slower", &Score::pays_but_loses,
                 kData | shown::kText, "pays, but loses")};
    append(all, cost_fields());
    return all;
  }();
  return fields;
}

}  // namespace tritax
