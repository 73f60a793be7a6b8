// A GEMM beside an all-gather that has nothing to do with it: on every rank C = A·B, and meanwhile every
// rank's block of X comes to all ranks.
//
// What training with sharded parameters does: the weights of the next layer are gathered while this layer is
// computed (FSDP, ZeRO-3). Neither waits for the other, so the question is only who gets the compute units,
// links and memory: one after the other, two kernels on two streams, copy engines, or one kernel whose
// workgroups take tiles of the GEMM and pieces of the all-gather from two queues and help out where work is
// left (ROCm/iris iris/concurrent/_kernels.py).
#pragma once

#include <cstdint>

#include "model/core/dtype.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_tile.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct GemmBesideAllGather {
  GemmShape gemm;         // of every rank
  std::int64_t rows = 0;  // of a rank's block of X
  std::int64_t cols = 0;
  int gpus = 2;
};

// One builder a pattern; each is called with checked knobs.
Schedule build_beside_library(const GemmBesideAllGather& problem, const Machine& machine,
                              const GemmKnobs& knobs, bool two_streams);
Schedule build_beside_streams(const GemmBesideAllGather& problem, const Machine& machine,
                              const GemmKnobs& knobs);
Schedule build_beside_copy_engine(const GemmBesideAllGather& problem, const Machine& machine,
                                  const GemmKnobs& knobs);
Schedule build_beside_queues(const GemmBesideAllGather& problem, const Machine& machine,
                             const GemmKnobs& knobs);

// The workload as the rest of the program sees it.
const Workload& gemm_beside_all_gather();

}  // namespace tritax
