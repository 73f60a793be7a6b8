// The sequences of a batch from the fields of its problem: up to four groups of alike sequences, "16x1x4096"
// for 16 of one new token and 4,096 keys each, whose lengths may be drawn.
//
// With `ragged` r (%) every sequence is shorter by a share of its own, uniform in [0, r): of what was there
// before, or, of a whole prompt, of the prompt. Drawn in order by the Mersenne twister of seed `draw`, so
// that equal fields give equal batches on every machine.
//
// Or the sequences of a file (`lengths`): comma-separated, with the columns query and context, and count for
// as many alike; of its groups the problem then says how many sequences there are, and the longest.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "model/workload/workload.hpp"
#include "model/workloads/paged_attention/grid.hpp"

namespace tritax {

inline constexpr std::array<std::string_view, 4> kBatchGroups{"sequences", "second", "third", "fourth"};

std::vector<PagedSequence> sequences_of(const Problem& problem);

// Fills in what a file says. Throws UserError for groups or files that cannot be, or that contradict each
// other.
void complete_batch(Problem& problem, const FieldPlace& place);

// "16 of 1/4096 + 2 of 512/512".
std::string batch_text(const Problem& problem);

}  // namespace tritax
