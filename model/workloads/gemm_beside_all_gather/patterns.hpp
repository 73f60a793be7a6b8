// A GEMM beside an independent all-gather: every rank computes C = A·B while every rank's block of X goes to
// all ranks.
//
// This happens in training with sharded parameters: the weights of the next layer are gathered while this
// layer is computed (FSDP, ZeRO-3). Neither waits for the other, so the question is only how they share
// compute units, links and memory: one after the other, two kernels on two streams, copy engines, or one
// kernel. In that kernel, workgroups take tiles of the GEMM and pieces of the all-gather from two queues, and
// help with the other queue when their own is empty (ROCm/iris iris/concurrent/_kernels.py).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/core/dtype.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_tile.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// The collective beside the GEMM. Only the library has all of them.
enum class BesideCollective : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all };
inline constexpr std::array<std::string_view, 4> kBesideNames{"all-gather", "reduce-scatter", "all-reduce",
                                                              "all-to-all"};

struct GemmBesideAllGather {
  GemmShape gemm;         // the same on every rank
  std::int64_t rows = 0;  // of a rank's block of X, or of a rank's matrix
  std::int64_t cols = 0;
  int gpus = 2;
  BesideCollective collective = BesideCollective::all_gather;
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
