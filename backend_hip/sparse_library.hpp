// The vendor's product of a sparse matrix and a vector, to compare with: cuSPARSE's SpMV of compressed sparse
// rows, loaded when it is asked for, so that nothing else needs it.
#pragma once

#include <string_view>
#include <vector>

#include "backend_hip/measure.hpp"
#include "model/schedule/sparse.hpp"

namespace tritax::gpu {

struct VendorSparseTimes {
  std::string_view form;  // "csr-default", "csr-alg2": the algorithm asked for
  Spread device_us;       // between two events around the call, which the flush before it hides from the host
  Spread wall_us;         // of the host: from the call until it is done
  double relative_error = 0;
};

// Times y = A·x on GPU 0, random values of `dtype` (fp32, fp16 or bf16), y and sums in fp32, as `run` says:
// warmup, repeats, flush_bytes, seed. One entry an algorithm; what the library prepares for a matrix once is
// not timed. Throws UserError where the library cannot be loaded, on AMD builds, for other dtypes, for a
// matrix without nonzeros, and where a result is wrong.
std::vector<VendorSparseTimes> time_vendor_sparse(const SparseMatrix& matrix, DType dtype,
                                                  const RunOptions& run);

// Measures the library on the sparse matrix of every different problem of the scenarios and writes a row an
// algorithm, and one of form "library", the fastest of them, for `tritax validate --library`. Throws what
// select_scenarios and time_vendor_sparse throw, and UserError for problems without one sparse matrix.
void measure_vendor_sparse(const MeasureOptions& options, const RunOptions& run);

}  // namespace tritax::gpu
