#include "model/workloads/gemm_all_scatter/workload.hpp"

namespace tritax {

GemmAllScatter gemm_all_scatter_of(const Problem& problem) {
  return {problem["m"],   problem["n"],
          problem["k"],   static_cast<DType>(problem["dtype"]),
          problem.gpus(), problem.workload == &gemm_all_gather() ? Blocks::rows : Blocks::columns};
}

Problem problem_of(const GemmAllScatter& gemm) {
  Problem problem = problem_of(gemm.blocks == Blocks::rows ? gemm_all_gather() : gemm_all_scatter());
  problem.values.give("m", gemm.m);
  problem.values.give("n", gemm.n);
  problem.values.give("k", gemm.k);
  problem.values.give("dtype", static_cast<std::int64_t>(gemm.dtype));
  problem.values.give("gpus", gemm.gpus);
  return problem;
}

Rect owned_block(const GemmAllScatter& gemm, int rank) {
  return block_of({gemm.m, gemm.n, gemm.k, gemm.dtype, gemm.blocks, gemm.gpus}, rank);
}

Share owned_columns(const GemmAllScatter& gemm, int rank) { return share_of(gemm.n, rank, gemm.gpus); }

double flops(const GemmAllScatter& gemm) {
  return 2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
}

double egress_bytes(const GemmAllScatter& gemm, int rank) {
  const Rect block = owned_block(gemm, rank);
  const std::int64_t elements = std::int64_t{block.rows} * block.cols * (gemm.gpus - 1);
  return static_cast<double>(elements) * bytes_of(gemm.dtype);
}

}  // namespace tritax
