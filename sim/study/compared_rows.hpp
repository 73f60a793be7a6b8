// What published numbers, recomputed, say of how far predictions are off: comparisons for compared.hpp.
//
//   times, rates, parts    by their ratio
//   a difference of times  by the time that it implies: published 900 us more than another, predicted 300 us
//                          more, and 500 us in all: 1100 us implied, the prediction is off by 1.2
//   ratios of times        by their ratio; of the two ways of a question too, where one is a library
//
// Left out: calibration, bounds, caches, and kernels with another lock than load-store, which no search
// tries.
#pragma once

#include <vector>

#include "sim/study/compared.hpp"
#include "sim/study/verdicts.hpp"

namespace tritax {

// Of the entries. Rows and entries need not be as many: a row is found by its id.
std::vector<Comparison> comparisons_of_rows(const std::vector<ReproducedRow>& rows,
                                            const std::vector<PublishedEntry>& entries);

// Of the questions: of the times that they hold themselves, and of their two ways.
std::vector<Comparison> comparisons_of_questions(const Reproduced& all, const PublishedNumbers& numbers);

}  // namespace tritax
