// The best of a search and its runner-up as one row, for tables of several questions or of a sweep.
#pragma once

#include <string>
#include <vector>

#include "model/core/fields.hpp"
#include "sim/study/ranked.hpp"

namespace tritax::cli {

struct Best {
  const std::vector<Candidate>* found = nullptr;  // empty: there is no answer
  Assessment assessment;
  bool skipped = false;  // … because the question was not reached

  bool is_tie() const { return found->size() > 1 && assessment.tied_with[1] == 1; }
};

// The times of the best stand behind its name; `mark` gives the remark on the row.
Fields<Best> best_fields(const Fields<Ranked>& times, std::string (*mark)(const Best&));

}  // namespace tritax::cli
