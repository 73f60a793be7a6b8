#include "model/workloads/gemm_all_scatter/workload.hpp"

namespace tritax {

GemmAllScatter gemm_all_scatter_of(const Problem& problem) {
  return {problem["m"], problem["n"], problem["k"], static_cast<DType>(problem["dtype"]), problem.gpus()};
}

Problem problem_of(const GemmAllScatter& gemm) {
  Problem problem = problem_of(gemm_all_scatter());
  problem.values.give("m", gemm.m);
  problem.values.give("n", gemm.n);
  problem.values.give("k", gemm.k);
  problem.values.give("dtype", static_cast<std::int64_t>(gemm.dtype));
  problem.values.give("gpus", gemm.gpus);
  return problem;
}

Share owned_columns(const GemmAllScatter& gemm, int rank) { return share_of(gemm.n, rank, gemm.gpus); }

std::int32_t widest_block(const GemmAllScatter& gemm) {
  return static_cast<std::int32_t>(owned_columns(gemm, 0).size());
}

double flops(const GemmAllScatter& gemm) {
  return 2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
}

double egress_bytes(const GemmAllScatter& gemm, int rank) {
  const std::int64_t elements = gemm.m * owned_columns(gemm, rank).size() * (gemm.gpus - 1);
  return static_cast<double>(elements) * bytes_of(gemm.dtype);
}

}  // namespace tritax
