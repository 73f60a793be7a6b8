// Problems as Python gives them.
#pragma once

#include <string>

#include "model/workload/workload.hpp"

namespace tritax::python {

// The problem on that machine, complete: where nobody says how many GPUs, all of it. Throws UserError for
// more GPUs than it has, and for what its workload refuses.
Problem problem_on(Problem problem, const Machine& machine);

// "gemm-all-scatter(m=8192, n=4608, k=36864, dtype='fp16', gpus=8)"
std::string text_of(const Problem& problem);

}  // namespace tritax::python
