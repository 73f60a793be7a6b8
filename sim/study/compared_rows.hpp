// Comparisons for compared.hpp from published numbers that were recomputed.
//
//   times, rates, parts    by their ratio
//   a difference of times  by the time that it implies: published 900 us more than another, predicted 300 us
//                          more, and 500 us in all: 1100 us implied, the prediction is off by 1.2
//   ratios of times        by their ratio; also the ratio of the two ways of a question, if one is a library
//
// Left out: calibration, bounds, caches, and kernels with another lock than load-store, because no search
// tries them.
#pragma once

#include <vector>

#include "sim/study/compared.hpp"
#include "sim/study/verdicts.hpp"

namespace tritax {

// Comparisons of the entries. A row is found by its id, so rows and entries may differ in number.
std::vector<Comparison> comparisons_of_rows(const std::vector<ReproducedRow>& rows,
                                            const std::vector<PublishedEntry>& entries);

// Comparisons of the questions: of the times that they hold themselves, and of their two ways.
std::vector<Comparison> comparisons_of_questions(const Reproduced& all, const PublishedNumbers& numbers);

}  // namespace tritax
