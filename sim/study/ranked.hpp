// A candidate of a search with its rank, as tables of fields for advise and taxonomy.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/core/fields.hpp"
#include "sim/study/advise.hpp"
#include "sim/study/assessment.hpp"

namespace tritax {

// The pointers must stay valid.
struct Ranked {
  const Candidate* candidate = nullptr;
  const Assessment* assessment = nullptr;
  std::size_t place = 0;  // 0: the fastest

  const Candidate* operator->() const { return candidate; }
};

std::vector<Ranked> ranked(const std::vector<Candidate>& candidates, const Assessment& assessment);

// "tie with 1", "uncertain", both or "".
std::string mark_of(const Assessment& assessment, std::size_t place);

// A row of `tritax advise`.
const Fields<Ranked>& candidate_fields();

// A row of `tritax taxonomy`: all costs of a pattern.
const Fields<Ranked>& taxonomy_fields();

// Fields of a question as a whole: the verdict.
const Fields<Answered>& answered_fields();

// A library in another form of the call.
struct RankedLibraryForm {
  const Pattern* pattern = nullptr;
  FormTime form;
};
std::vector<RankedLibraryForm> library_forms(const std::vector<Candidate>& candidates);
const Fields<RankedLibraryForm>& library_form_fields();

// The verdict for other classes of own kernels.
const Fields<ClassVerdict>& class_verdict_fields();

}  // namespace tritax
