// GEMM + all-scatter: C = A·B, A (M×K) on every rank, B split by columns; every rank ends with all of C.
//
// Rank r owns the columns [r·N/W, (r+1)·N/W) of B and C (split as evenly as possible when W does not divide
// N), computes C[:, own columns] and sends it to all peers. Source: arXiv:2511.12500 §4, §5.2; ROCm/iris
// docs/FINEGRAINED_OVERLAP.md.
#pragma once

#include <cstdint>
#include <string>

#include "model/core/dtype.hpp"

namespace tritax {

struct GemmAllScatter {
  std::int64_t m = 0;
  std::int64_t n = 0;  // of the whole problem
  std::int64_t k = 0;
  DType dtype = DType::fp16;  // of A, B and C; accumulation is fp32
  int gpus = 1;
};

struct ColumnRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

// Columns of C that `rank` computes.
ColumnRange owned_columns(const GemmAllScatter& workload, int rank);

// Floating point operations of the whole problem: 2·M·N·K.
double flops(const GemmAllScatter& workload);

// Bytes that one rank sends: M·Nl·e·(W-1) (arXiv:2511.12500 §4).
double egress_bytes(const GemmAllScatter& workload, int rank);

// Throws UserError for sizes < 1, sizes above 2^20, gpus < 1, fewer columns than GPUs.
// `where` is the file:line, key or flag to blame.
void check(const GemmAllScatter& workload, const std::string& where);

}  // namespace tritax
