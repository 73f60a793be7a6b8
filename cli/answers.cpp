#include "cli/answers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/best.hpp"
#include "cli/fields.hpp"
#include "cli/terminal.hpp"

namespace tritax::cli {

namespace {

// Whether all questions agree in a property; common properties stand once above the table.
template <typename Get>
bool is_same(const std::vector<Answer>& answers, const Get& get) {
  return std::all_of(answers.begin(), answers.end(), [&](const Answer& answer) {
    return get(*answer.question) == get(*answers.front().question);
  });
}

std::string size_of(const Question& question) {
  return fmt::format("{} {}", question.problem.workload->name,
                     question.problem.workload->size_text(question.problem));
}

// Remarks on the best: "tie" with the runner-up, "uncertain library", "nothing comparable".
std::string mark_of_best(const Best& best) {
  std::vector<std::string> marks;
  if (best.is_tie()) marks.emplace_back("tie");
  for (std::size_t i = 0; i < best.found->size(); ++i) {
    if (best.assessment.doubts[i] != nullptr) {
      marks.push_back(fmt::format("uncertain {}", (*best.found)[i].pattern->name));
    }
  }
  if (!best.assessment.trust.cautions.empty()) marks.emplace_back("nothing comparable");
  return fmt::format("{}", fmt::join(marks, ", "));
}

Table answer_table(const std::vector<Answer>& answers) {
  std::vector<Best> bests;
  for (const Answer& answer : answers) {
    const std::vector<Candidate>& found = answer.advice.candidates;
    bests.push_back(
        {&found, assess(answer.question->problem, answer.question->machine, found), answer.refusal.empty()});
  }
  Table table =
      table_of(best_fields(pick(candidate_fields(), {"time", "speedup"}), mark_of_best), bests, shown::kText);
  const bool scenarios = !answers.front().question->id.empty();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    std::vector<Cell> front;
    if (scenarios) front.emplace_back(answers[i].question->id);
    for (const auto& [name, value] : answers[i].question->at) front.emplace_back(value);
    table.rows[i].insert(table.rows[i].begin(), front.begin(), front.end());
  }
  std::vector<Column> front;
  if (scenarios) front.push_back({"id", "scenario"});
  for (const auto& [name, value] : answers.front().question->at) front.push_back({name, name});
  table.columns.insert(table.columns.begin(), front.begin(), front.end());
  return table;
}

}  // namespace

void print_answers(const std::vector<Answer>& answers, const Outputs& outputs) {
  const Question& first = *answers.front().question;
  std::string heading = fmt::format("{} questions", answers.size());
  if (is_same(answers, size_of)) heading += ", " + size_of(first);
  if (is_same(answers, [](const Question& one) { return one.problem.gpus(); })) {
    heading += fmt::format(", {} GPUs", first.problem.gpus());
  }
  if (is_same(answers, [](const Question& one) { return one.machine.title(); })) {
    heading += fmt::format(" of {}", first.machine.title());
  }
  outputs.print(styled(heading, Style::bold) + "\n\n");
  outputs.print(answer_table(answers));
  outputs.print("\n");
  for (const Answer& answer : answers) {
    if (!answer.refusal.empty()) outputs.print(wrapped("No answer: " + answer.refusal));
  }
  outputs.print(styled("Give one question alone, or --id, to see its full answer. --csv and --json have all "
                       "candidates.",
                       Style::faint) +
                '\n');
}

}  // namespace tritax::cli
