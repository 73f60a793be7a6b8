#include "cli/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/fields.hpp"
#include "cli/terminal.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

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
  outputs.print('\n' + sentences_of(score_of("all", verdicts)));
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
