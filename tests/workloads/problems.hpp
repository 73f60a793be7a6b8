// Problems of workloads whose tests begin with a struct.
#pragma once

#include "model/workloads/all_gather/workload.hpp"
#include "model/workloads/library_gemm/workload.hpp"
#include "model/workloads/remote_access/workload.hpp"

namespace tritax {

inline Problem problem_of(const RemoteAccess& access) {
  Problem problem = problem_of(remote_access());
  problem.values.give("operation", static_cast<std::int64_t>(access.operation));
  problem.values.give("peers", static_cast<std::int64_t>(access.peers));
  problem.values.give("bytes", access.bytes);
  problem.values.give("block_bytes", access.block_bytes);
  problem.values.give("gpus", access.gpus);
  return problem;
}

inline Problem problem_of(const AllGather& gather) {
  Problem problem = problem_of(all_gather());
  problem.values.give("rows", gather.rows);
  problem.values.give("cols", gather.cols);
  problem.values.give("dtype", static_cast<std::int64_t>(gather.dtype));
  problem.values.give("gpus", gather.gpus);
  problem.values.give("posted_bytes_per_peer", gather.posted_bytes_per_peer);
  return problem;
}

// A bare call; the library picks the tile.
inline Problem library_gemm_of(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  Problem problem = problem_of(library_gemm());
  problem.values.give("m", m);
  problem.values.give("n", n);
  problem.values.give("k", k);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  problem.values.give("framework", 0);
  return problem;
}

}  // namespace tritax
