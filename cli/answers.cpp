#include "cli/answers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/report.hpp"
#include "cli/standing.hpp"
#include "cli/terminal.hpp"

namespace tritax::cli {

namespace {

// Whether all questions agree in it; what they agree in stands above the table, once.
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

// Whether the runner-up is as good, and what else has to be known: "tie", "uncertain library", "never
// compared".
std::string mark_of_best(const Question& question, const std::vector<Candidate>& found) {
  const Judged judgement = judged(question.problem, question.machine, found);
  std::vector<std::string> marks;
  if (found.size() > 1 && judgement.tied_with[1] == 1) marks.emplace_back("tie");
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (judgement.doubts[i] != nullptr) marks.push_back(fmt::format("uncertain {}", found[i].pattern->name));
  }
  if (!judgement.standing.cautions.empty()) marks.emplace_back("never compared");
  return fmt::format("{}", fmt::join(marks, ", "));
}

Table answer_table(const std::vector<Answer>& answers) {
  Table table;
  const bool scenarios = !answers.front().question->id.empty();
  const auto& at = answers.front().question->at;
  if (scenarios) table.columns.push_back({"id", "scenario"});
  for (const auto& [name, value] : at) table.columns.push_back({name, name});
  for (const Column& column : std::vector<Column>{{"pattern", "best pattern"},
                                                  {"time_us", "time", "us"},
                                                  {"speedup", "speedup", "", 2},
                                                  {"second", "second"},
                                                  {"second_percent", "slower by", "%"},
                                                  {"mark", "mark"},
                                                  {"knobs", "knobs of the best"}}) {
    table.columns.push_back(column);
  }
  for (const Answer& answer : answers) {
    std::vector<Cell> row;
    if (scenarios) row.emplace_back(answer.question->id);
    for (const auto& [name, value] : answer.question->at) row.emplace_back(value);
    const std::vector<Candidate>& found = answer.advice.candidates;
    if (found.empty()) {
      row.emplace_back(std::string(answer.refusal.empty() ? "not searched" : "none: see below"));
      row.resize(table.columns.size());
      table.add(std::move(row));
      continue;
    }
    const Candidate& best = found.front();
    row.emplace_back(std::string(best.pattern->name));
    row.emplace_back(us(best.time_ns));
    row.push_back(best.speedup ? Cell{*best.speedup} : Cell{});
    row.push_back(found.size() > 1 ? Cell{std::string(found[1].pattern->name)} : Cell{});
    row.push_back(found.size() > 1 ? Cell{100 * (found[1].time_ns / best.time_ns - 1)} : Cell{});
    row.emplace_back(mark_of_best(*answer.question, found));
    row.emplace_back(describe(*best.pattern, best.knobs));
    table.add(std::move(row));
  }
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
  outputs.print(
      styled("One question in full: its values alone, or --id; --csv and --json have all candidates.",
             Style::faint) +
      '\n');
}

}  // namespace tritax::cli
