// A GEMM beside an independent all-gather: every rank computes C = A·B while every rank's block of X goes to
// all ranks.
//
// This happens in training with sharded parameters: the weights of the next layer are gathered while this
// layer is computed (FSDP, ZeRO-3). Neither waits for the other, so the question is only how they share
// compute units, links and memory: one after the other, two kernels on two streams, copy engines, or one
// kernel. In that kernel, workgroups take tiles of the GEMM and pieces of the all-gather from two queues, and
// help with the other queue when their own is empty (ROCm/iris iris/concurrent/_kernels.py).
#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// The workload of a GEMM beside an all-gather.
const Workload& gemm_beside_collective();

}  // namespace tritax
