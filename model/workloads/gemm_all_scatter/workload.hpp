// C = A·B in blocks, of which every rank computes one; every rank ends with all of C. Two workloads:
//
// GEMM + all-scatter: A (M×K) is on every rank and B is split by columns. Rank r owns the columns [r·N/W,
// (r+1)·N/W) of B and C (split as evenly as possible when W does not divide N), computes C[:, own columns]
// and sends it to all peers. Source: arXiv:2511.12500 §4, §5.2; ROCm/iris docs/FINEGRAINED_OVERLAP.md.
//
// GEMM + all-gather: B (K×N) is on every rank and A is split by rows, in the same way. Rank r computes C[own
// rows, :]. Source: ROCm/mori python/mori/ops/gemm_ag; ROCm/iris iris/ops (matmul_all_gather).
#pragma once

#include <cstdint>

#include "model/core/dtype.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct GemmAllScatter {
  std::int64_t m = 0;
  std::int64_t n = 0;  // of the whole problem
  std::int64_t k = 0;
  DType dtype = DType::fp16;  // of A, B and C; accumulation is fp32
  int gpus = 1;
  Blocks blocks = Blocks::columns;  // rows: the all-gather
};

GemmAllScatter gemm_all_scatter_of(const Problem& problem);
Problem problem_of(const GemmAllScatter& gemm);

// The part of C that `rank` computes; that of rank 0 is the largest. Of an all-scatter: its columns.
Rect owned_block(const GemmAllScatter& gemm, int rank);
Share owned_columns(const GemmAllScatter& gemm, int rank);

// Floating point operations of the whole problem: 2·M·N·K.
double flops(const GemmAllScatter& gemm);

// Bytes that one rank sends: its block of C, in the type of the operands, to W-1 peers (arXiv:2511.12500 §4).
double egress_bytes(const GemmAllScatter& gemm, int rank);

// The workloads.
const Workload& gemm_all_scatter();
const Workload& gemm_all_gather();

}  // namespace tritax
