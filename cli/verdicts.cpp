#include "cli/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/fields.hpp"
#include "cli/terminal.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

std::string share(std::size_t part, std::size_t all) {
  return all == 0 ? "-" : fmt::format("{:.0f}", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

Table family_table(const std::vector<JudgedQuestion>& verdicts, const std::string& family) {
  std::vector<JudgedQuestion> its;
  std::copy_if(verdicts.begin(), verdicts.end(), std::back_inserter(its),
               [&family](const JudgedQuestion& one) { return one.family == family; });
  return table_of(verdict_fields(), its, shown::kText);
}

Table score_table(const std::vector<JudgedQuestion>& verdicts) {
  std::vector<Score> scores = scores_by_family(verdicts);
  scores.push_back(score_of("all", verdicts));
  return table_of(score_fields(), scores, shown::kText);
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
  return table_of(verdict_fields(), verdicts, shown::kCsv);
}

ordered_json verdicts_json(const std::vector<JudgedQuestion>& verdicts) {
  ordered_json list = ordered_json::array();
  for (const JudgedQuestion& one : verdicts) list.push_back(json_of(verdict_fields(), one));
  return list;
}

ordered_json score_json(const std::vector<JudgedQuestion>& verdicts) {
  ordered_json all = json_of(score_fields(), score_of("all", verdicts));
  all["tie_difference"] = kTieDifference;
  all["clear_difference"] = kClearDifference;
  ordered_json& families = all["families"] = ordered_json::array();
  for (const Score& score : scores_by_family(verdicts)) families.push_back(json_of(score_fields(), score));
  return all;
}

}  // namespace tritax::cli
