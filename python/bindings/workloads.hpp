// Problems from Python.
#pragma once

#include <string>

#include "model/workload/workload.hpp"

namespace tritax::python {

// The complete problem on that machine; by default with all GPUs of the machine. Throws UserError for more
// GPUs than the machine has, and for problems that the workload refuses.
Problem problem_on(Problem problem, const Machine& machine);

// "gemm-all-scatter(m=8192, n=4608, k=36864, dtype='fp16', gpus=8)"
std::string text_of(const Problem& problem);

}  // namespace tritax::python
