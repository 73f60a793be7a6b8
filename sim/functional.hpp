// Functional execution: the schedule on real numbers, in simulated order, checked against Eigen.
//
// Every rank's buffers hold real matrices. Operations take effect at their simulated start (reads) and end (writes).
// A read is stale when nothing orders the write before it: each workgroup carries a vector clock that program order,
// release/acquire on flags, kernel boundaries, stream order and host barriers advance; a read of an element whose last
// write is not in the reader's past, or that was never written, is reported with the operation that made it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

struct FunctionalResult {
  std::vector<std::string> stale_reads;  // at most 20, in simulated order; each names the reading operation and the tile
  double max_relative_error = 0;         // of the result buffer against the reference, over all ranks
  std::vector<double> error_of_rank;
};

// Executes a GEMM + all-scatter schedule: buffers "A" and "B" of every rank are filled with random numbers from `seed`
// (A the same on all ranks), everything else is unwritten. The reference of the result buffer is A·[B_0 … B_{W-1}].
// Throws UserError when the schedule has no such buffers or result.
FunctionalResult execute_functionally(const Schedule& schedule, const Machine& machine, std::uint64_t seed);

}  // namespace tritax
