// GEMM + all-scatter: C = A·B, with A (M×K) on every rank and B split by columns; every rank ends with all of
// C.
//
// Rank r owns the columns [r·N/W, (r+1)·N/W) of B and C (split as evenly as possible when W does not divide
// N), computes C[:, own columns] and sends it to all peers. Source: arXiv:2511.12500 §4, §5.2; ROCm/iris
// docs/FINEGRAINED_OVERLAP.md.
#pragma once

#include <cstdint>

#include "model/core/dtype.hpp"
#include "model/parts/kernels.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct GemmAllScatter {
  std::int64_t m = 0;
  std::int64_t n = 0;  // of the whole problem
  std::int64_t k = 0;
  DType dtype = DType::fp16;  // of A, B and C; accumulation is fp32
  int gpus = 1;
};

GemmAllScatter gemm_all_scatter_of(const Problem& problem);
Problem problem_of(const GemmAllScatter& gemm);

// Columns of C that `rank` computes.
Share owned_columns(const GemmAllScatter& gemm, int rank);

// Columns of the widest block that a rank owns.
std::int32_t widest_block(const GemmAllScatter& gemm);

// Floating point operations of the whole problem: 2·M·N·K.
double flops(const GemmAllScatter& gemm);

// Bytes that one rank sends: M·Nl·e·(W-1) (arXiv:2511.12500 §4).
double egress_bytes(const GemmAllScatter& gemm, int rank);

// The GEMM + all-scatter workload.
const Workload& gemm_all_scatter();

}  // namespace tritax
