// All-gather alone: every GPU sends its rows × columns shard to all GPUs.
#pragma once

#include <cstdint>

#include "model/parts/gemm_knobs.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

inline constexpr std::int32_t kAllGatherTile = 128;  // rows and columns, ROCm/iris iris/ccl/config.py

struct AllGather {
  std::int64_t rows = 0;  // of one rank's shard
  std::int64_t cols = 0;
  DType dtype = DType::fp16;
  int gpus = 2;
  // What a workgroup stores to each peer before it waits for its next load; 0: what the machine's rate of
  // remote stores was measured with.
  std::int64_t posted_bytes_per_peer = 0;
};

// The vendor's collective kernel.
Schedule library_all_gather_schedule(const AllGather& gather, const Machine& machine);

// Persistent push kernel of knobs.comm_cus workgroups a rank: workgroup p loads tiles p, p + n, … of its
// shard and stores each to all ranks, itself included (ROCm/iris iris/ccl all_gather).
Schedule all_gather_schedule(const AllGather& gather, const GemmKnobs& knobs);

// The workload as the rest of the program sees it.
const Workload& all_gather();

}  // namespace tritax
