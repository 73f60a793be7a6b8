// The sequences of a batch from the fields of its problem: up to four groups of like sequences. "16x1x4096"
// is 16 sequences of one new token and 4,096 keys each; lengths may be random.
//
// With `ragged` r (%) every sequence is shortened by a random share, uniform in [0, r): a share of its
// history, or, for a whole prompt, of the prompt. Shares are drawn in order by the Mersenne twister with seed
// `draw`, so that equal fields give equal batches on every machine.
//
// Or the sequences of a file (`lengths`): comma-separated, with the columns query and context, and count for
// several like sequences. The fields of the groups then give the number of sequences and the longest one.
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

// Sets the fields that a file determines. Throws UserError for impossible groups or files, and where both
// contradict each other.
void complete_batch(Problem& problem, const FieldPlace& place);

// "16 of 1/4096 + 2 of 512/512".
std::string batch_text(const Problem& problem);

}  // namespace tritax
