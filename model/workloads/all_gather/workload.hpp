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
  // Bytes that a workgroup stores to each peer before it waits for its next load; 0: the value of the
  // measurement behind the machine's rate of remote stores.
  std::int64_t posted_bytes_per_peer = 0;
};

// A schedule of the vendor's collective kernel. `lists`: a framework then copies the blocks to a list of
// tensors.
Schedule library_all_gather_schedule(const AllGather& gather, const Machine& machine, bool lists = false);

// A persistent push kernel of knobs.comm_cus workgroups per rank: workgroup p loads tiles p, p + n, … of its
// shard and stores each tile to all ranks, the own rank included (ROCm/iris iris/ccl all_gather).
Schedule all_gather_schedule(const AllGather& gather, const GemmKnobs& knobs, bool multimem = false);

// The all-gather workload.
const Workload& all_gather();

}  // namespace tritax
