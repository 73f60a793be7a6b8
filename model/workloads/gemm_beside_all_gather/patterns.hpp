// A GEMM beside an independent all-gather: every rank computes C = A·B while every rank's block of X goes to
// all ranks.
//
// This happens in training with sharded parameters: the weights of the next layer are gathered while this
// layer is computed (FSDP, ZeRO-3). Neither waits for the other, so the question is only how they share
// compute units, links and memory: one after the other, two kernels on two streams, copy engines, or one
// kernel. In that kernel, workgroups take tiles of the GEMM and pieces of the all-gather from two queues, and
// help with the other queue when their own is empty (ROCm/iris iris/concurrent/_kernels.py).
#pragma once

#include <cstdint>

#include "model/core/dtype.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_tile.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct GemmBesideAllGather {
  GemmShape gemm;         // the same on every rank
  std::int64_t rows = 0;  // of a rank's block of X
  std::int64_t cols = 0;
  int gpus = 2;
};

// One builder per pattern; builders expect checked knobs.
Schedule build_beside_library(const GemmBesideAllGather& problem, const Machine& machine,
                              const GemmKnobs& knobs, bool two_streams);
Schedule build_beside_streams(const GemmBesideAllGather& problem, const Machine& machine,
                              const GemmKnobs& knobs);
Schedule build_beside_copy_engine(const GemmBesideAllGather& problem, const Machine& machine,
                                  const GemmKnobs& knobs);
Schedule build_beside_queues(const GemmBesideAllGather& problem, const Machine& machine,
                             const GemmKnobs& knobs);

// The workload of a GEMM beside an all-gather.
const Workload& gemm_beside_all_gather();

}  // namespace tritax
