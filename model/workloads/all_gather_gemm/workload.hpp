// All-gather + GEMM: C = A·B, with A (M×K) sharded over the ranks and an own B (K×N) on every rank; rank r
// ends with its C_r = A·B_r (M×N).
//
// With A sharded by rows (sequence parallelism), this is the first half of tensor parallelism with
// column-parallel weights; with A sharded along K, it is the workload of arXiv:2511.02168. Every rank needs
// all of A: it receives M·K·(W-1)/W elements.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/core/dtype.hpp"
#include "model/parts/kernels.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

enum class Sharding : std::uint8_t { rows, k };
inline constexpr std::array<std::string_view, 2> kShardingNames{"rows", "k"};

struct AllGatherGemm {
  std::int64_t m = 0;
  std::int64_t n = 0;  // per rank
  std::int64_t k = 0;
  DType dtype = DType::fp16;  // of A, B and C; accumulation is fp32
  Sharding sharding = Sharding::rows;
  int gpus = 1;
};

AllGatherGemm all_gather_gemm_of(const Problem& problem);

// The rows or columns of A that a rank has at the start, split as evenly as possible.
Rect slice_of(const AllGatherGemm& problem, int rank);

// The all-gather + GEMM workload.
const Workload& all_gather_gemm();

}  // namespace tritax
