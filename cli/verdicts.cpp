#include "cli/verdicts.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

Cell number_cell(const std::optional<double>& value) { return value ? Cell{*value} : Cell{}; }

std::string outcome_of(const JudgedQuestion& verdict) {
  return std::string(kVerdictOutcomeNames[static_cast<std::size_t>(verdict.outcome)]);
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.3g}", *ratio) : "-";
}

Table family_table(const std::vector<JudgedQuestion>& verdicts, const std::string& family) {
  Table table{{{"id", "id"},
               {"first", "first"},
               {"second", "second"},
               {"published", "published"},
               {"predicted", "predicted"},
               {"verdict", "verdict"},
               {"cost_percent", "cost", "%"},
               {"mark", "mark"}},
              {}};
  for (const JudgedQuestion& verdict : verdicts) {
    if (verdict.family != family) continue;
    const std::string mark = verdict.pays_but_loses ? "pays, but loses"
                             : verdict.calibration  ? "calibration"
                                                    : "";
    const bool costs = verdict.cost > 0;
    table.add({verdict.id, verdict.first, verdict.second, ratio_text(verdict.published_ratio),
               ratio_text(verdict.predicted_ratio), outcome_of(verdict),
               costs ? Cell{100 * verdict.cost} : Cell{}, mark});
  }
  return table;
}

std::int64_t count(std::size_t n) { return static_cast<std::int64_t>(n); }

std::string share(std::size_t part, std::size_t all) {
  return all == 0 ? "-" : fmt::format("{:.0f}", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

Table score_table(const std::vector<JudgedQuestion>& verdicts) {
  Table table{{{"family", "family"},
               {"questions", "questions"},
               {"right", "right"},
               {"tie", "tie"},
               {"wrong", "wrong"},
               {"failed", "failed"},
               {"clear", "clear"},
               {"clear_right_or_tie_percent", "right or tie of these", "%"},
               {"clear_right_percent", "right of these", "%"},
               {"pays_but_loses", "pays, but loses"},
               {"mean_cost_percent", "mean cost", "%"}},
              {}};
  std::vector<Score> scores = scores_by_family(verdicts);
  scores.push_back(score_of("all", verdicts));
  for (const Score& score : scores) {
    table.add({score.family, count(score.questions), count(score.right), count(score.tie), count(score.wrong),
               count(score.failed), count(score.clear), share(score.clear_right_or_tie, score.clear),
               share(score.clear_right, score.clear), count(score.pays_but_loses),
               Cell{100 * score.mean_cost}});
  }
  return table;
}

std::string sentence_of(const Score& score) {
  return fmt::format(
             "{} questions, which of two ways is faster: {} right, {} tie, {} wrong, {} without a "
             "prediction.\n"
             "Where the published times differ by more than {:.0f} %: {} % right or tie, {} % right (of "
             "{}).\n",
             score.questions, score.right, score.tie, score.wrong, score.failed, 100 * kClearDifference,
             share(score.clear_right_or_tie, score.clear), share(score.clear_right, score.clear),
             score.clear) +
         fmt::format(
             "\"It pays\" where it loses by more than {:.0f} %: {} % of the questions ({} of {} such "
             "verdicts).\n"
             "The predicted choice takes {:.1f} % longer than the better one on average, {:.0f} % at worst.\n"
             "A tie is a difference of at most {:.0f} %, published or predicted.\n",
             100 * kClearDifference, share(score.pays_but_loses, score.questions), score.pays_but_loses,
             score.says_it_pays, 100 * score.mean_cost, 100 * score.worst_cost, 100 * kTieDifference);
}

ordered_json json_of(const Score& score) {
  return {{"family", score.family},
          {"questions", score.questions},
          {"right", score.right},
          {"tie", score.tie},
          {"wrong", score.wrong},
          {"failed", score.failed},
          {"clear", score.clear},
          {"clear_right", score.clear_right},
          {"clear_right_or_tie", score.clear_right_or_tie},
          {"says_it_pays", score.says_it_pays},
          {"pays_but_loses", score.pays_but_loses},
          {"mean_cost", score.mean_cost},
          {"worst_cost", score.worst_cost}};
}

}  // namespace

void print_verdicts(const std::vector<JudgedQuestion>& verdicts, const Outputs& outputs) {
  if (verdicts.empty()) return;
  for (const Score& score : scores_by_family(verdicts)) {
    outputs.print(styled("Which is faster: " + score.family, Style::bold) + '\n');
    outputs.print(family_table(verdicts, score.family));
    outputs.print("\n");
  }
  for (const JudgedQuestion& verdict : verdicts) {
    if (!verdict.failure.empty()) outputs.print(fmt::format("{}: {}\n", verdict.id, verdict.failure));
  }
  outputs.print(
      styled("Score of the verdicts; published and predicted: time of the second way / of the first",
             Style::bold) +
      '\n');
  outputs.print(score_table(verdicts));
  outputs.print('\n' + sentence_of(score_of("all", verdicts)));
}

Table verdict_table(const std::vector<JudgedQuestion>& verdicts) {
  Table table{{{"id", "id"},
               {"family", "family"},
               {"first", "first"},
               {"second", "second"},
               {"unit", "unit"},
               {"published_first", "published_first"},
               {"published_second", "published_second"},
               {"predicted_first", "predicted_first"},
               {"predicted_second", "predicted_second"},
               {"published_ratio", "published_ratio"},
               {"predicted_ratio", "predicted_ratio"},
               {"verdict", "verdict"},
               {"cost", "cost"},
               {"pays_but_loses", "pays_but_loses"},
               {"calibration", "calibration"},
               {"source", "source"},
               {"failure", "failure"}},
              {}};
  const auto yes_no = [](bool value) { return std::string(value ? "true" : "false"); };
  for (const JudgedQuestion& one : verdicts) {
    table.add({one.id, one.family, one.first, one.second, one.unit, number_cell(one.published_first),
               number_cell(one.published_second), number_cell(one.predicted_first),
               number_cell(one.predicted_second), one.published_ratio, number_cell(one.predicted_ratio),
               outcome_of(one), one.cost, yes_no(one.pays_but_loses), yes_no(one.calibration), one.source,
               one.failure});
  }
  return table;
}

ordered_json verdicts_json(const std::vector<JudgedQuestion>& verdicts) {
  ordered_json list = ordered_json::array();
  for (const JudgedQuestion& one : verdicts) {
    list.push_back({{"id", one.id},
                    {"family", one.family},
                    {"first", one.first},
                    {"second", one.second},
                    {"unit", one.unit},
                    {"published_first", json_of(one.published_first)},
                    {"published_second", json_of(one.published_second)},
                    {"predicted_first", json_of(one.predicted_first)},
                    {"predicted_second", json_of(one.predicted_second)},
                    {"published_ratio", one.published_ratio},
                    {"predicted_ratio", json_of(one.predicted_ratio)},
                    {"verdict", outcome_of(one)},
                    {"cost", one.cost},
                    {"says_it_pays", one.says_it_pays},
                    {"pays_but_loses", one.pays_but_loses},
                    {"calibration", one.calibration},
                    {"source", one.source},
                    {"notes", one.notes}});
    if (!one.failure.empty()) list.back()["failure"] = one.failure;
  }
  return list;
}

ordered_json score_json(const std::vector<JudgedQuestion>& verdicts) {
  ordered_json all = json_of(score_of("all", verdicts));
  all["tie_difference"] = kTieDifference;
  all["clear_difference"] = kClearDifference;
  ordered_json& families = all["families"] = ordered_json::array();
  for (const Score& score : scores_by_family(verdicts)) families.push_back(json_of(score));
  return all;
}

}  // namespace tritax::cli
