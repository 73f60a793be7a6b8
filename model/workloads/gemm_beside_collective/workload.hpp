// A GEMM beside an independent collective: every rank computes C = A·B while an all-gather, a reduce-scatter,
// an all-reduce or an all-to-all of other data runs.
//
// This happens in training: the weights of the next layer are gathered, or the gradients of the last one are
// reduced, while a layer is computed (FSDP, ZeRO-3). Neither waits for the other, so the question is only how
// they share compute units, links and memory: one after the other, two kernels on two streams, copy engines,
// or one kernel. In that kernel, workgroups take tiles of the GEMM and pieces of the collective from two
// queues, and help with the other queue when their own is empty (ROCm/iris iris/concurrent/_kernels.py).
#pragma once

#include "model/workload/workload.hpp"

namespace tritax {

// The workload of a GEMM beside a collective.
const Workload& gemm_beside_collective();

}  // namespace tritax
