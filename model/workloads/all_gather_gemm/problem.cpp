#include "model/workloads/all_gather_gemm/workload.hpp"

namespace tritax {

AllGatherGemm all_gather_gemm_of(const Problem& problem) {
  return {problem["m"],
          problem["n"],
          problem["k"],
          static_cast<DType>(problem["dtype"]),
          static_cast<Sharding>(problem["sharding"]),
          problem.gpus()};
}

Rect slice_of(const AllGatherGemm& problem, int rank) {
  const bool rows = problem.sharding == Sharding::rows;
  const Share share = share_of(rows ? problem.m : problem.k, rank, problem.gpus);
  const auto begin = static_cast<std::int32_t>(share.begin);
  const auto size = static_cast<std::int32_t>(share.size());
  if (rows) return {begin, 0, size, static_cast<std::int32_t>(problem.k)};
  return {0, begin, static_cast<std::int32_t>(problem.m), size};
}

}  // namespace tritax
