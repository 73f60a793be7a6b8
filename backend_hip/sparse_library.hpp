// The vendor's product of a sparse matrix and a vector, for comparison: cuSPARSE's SpMV of compressed sparse
// rows. The library is loaded on request, so that nothing else depends on it.
#pragma once

#include <string_view>
#include <vector>

#include "backend_hip/measure.hpp"
#include "model/schedule/sparse.hpp"

namespace tritax::gpu {

struct VendorSparseTimes {
  std::string_view form;  // "csr-default", "csr-alg2": the requested algorithm
  Spread device_us;  // between two events around the call; the flush before the call hides the host's launch
  Spread wall_us;    // host time: from the call until its end
  double relative_error = 0;
};

// Times y = A·x on GPU 0, with random values of `dtype` (fp32, fp16 or bf16), and y and sums in fp32. `run`
// gives warmup, repeats, flush_bytes and seed. There is one entry per algorithm; the library's one-time
// preparation of a matrix is not timed. Throws UserError where the library cannot be loaded, on AMD builds,
// for other dtypes, for a matrix without nonzeros, and for wrong results.
std::vector<VendorSparseTimes> time_vendor_sparse(const SparseMatrix& matrix, DType dtype,
                                                  const RunOptions& run);

// Measures the library on the sparse matrix of every distinct problem of the scenarios. Writes one row per
// algorithm, and one of form "library" for the fastest of them, for `tritax validate --library`. Throws the
// errors of select_scenarios and time_vendor_sparse, and UserError for problems without exactly one sparse
// matrix.
void measure_vendor_sparse(const MeasureOptions& options, const RunOptions& run);

}  // namespace tritax::gpu
