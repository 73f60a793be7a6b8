// The answers to several questions of `tritax advise` as one table.
#pragma once

#include <string>
#include <vector>

#include "cli/output.hpp"
#include "cli/questions.hpp"
#include "sim/study/advise.hpp"

namespace tritax::cli {

struct Answer {
  const Question* question = nullptr;
  Advice advice;
  std::string refusal;  // why there is no answer
};

// One line per question, with the best pattern, its time and the runner-up; questions without an answer come
// last.
void print_answers(const std::vector<Answer>& answers, const Outputs& outputs);

}  // namespace tritax::cli
