// One-shot all-reduce: every rank adds up the whole sum itself.
//
//   pushed, G workgroups:  for pieces p, p+G, …: load; for peers: store -> slot; arrived[piece] += 1 there
//                          for the same pieces:  wait arrived; load; for peers: reduce slot; store C
//   pulled, G workgroups:  exchange arrivals: all have their summands
//                          for pieces:           load; for peers: reduce their summand; store C
//                          exchange arrivals: all have been read
//
// With a codec (pushed) slots hold coded matrices, that of the own rank too: all ranks add up the same
// numbers.
//
// One step instead of two, for W/2 times the bytes: for small matrices.
#pragma once

#include "model/parts/partial_sums.hpp"

namespace tritax {

// `draft`: without a product, with sums on all ranks.
void add_one_shot(SumDraft& draft);

}  // namespace tritax
