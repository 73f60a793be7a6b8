// Two-shot all-reduce whose data a line codec holds as they cross links (mk1-project/quickreduce,
// csrc/core/allreduce.h, AllReduceTwoshot):
//
//   G workgroups:  for pieces of peers p, p+G, …: load; store -> slot of the owner, coded
//                                                 arrived[i] += 1 there
//                  for own pieces p, p+G, …:      wait arrived[i]; load; for peers: reduce slot
//                                                 for ranks: store -> sum there, coded; summed[i] += 1 there
//                  for pieces of all p, p+G, …:   wait summed[i]; load sum; store C
//
// The owner also takes its sum from the coded buffer: all ranks end with the same numbers. Slots and sums of
// a rank's block begin at column 0, where groups of the codec begin.
#pragma once

#include "model/parts/partial_sums.hpp"

namespace tritax {

// `draft`: without a product, with sums on all ranks.
void add_coded_two_shot(SumDraft& draft);

}  // namespace tritax
