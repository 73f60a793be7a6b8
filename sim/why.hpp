// Why the winner of a search wins: two to four sentences, each computed from the runs that are compared.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/workload/gemm_all_scatter.hpp"
#include "sim/advise.hpp"

namespace tritax {

// `candidates`: one a pattern, best first, as in Advice. Empty for no candidates.
std::vector<std::string> explain_winner(std::span<const Candidate> candidates, const GemmAllScatter& workload,
                                        const Machine& machine);

}  // namespace tritax
