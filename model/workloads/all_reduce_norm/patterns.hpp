// The sum, the norm and the gather of normalised rows in one kernel: the GPU that owns a row does all of it.
//
//   push:  for rows of peers by G: copy -> slot at the owner; arrived[row] += 1 there
//          for own rows by G: wait arrived[row]; load residual; reduce partial; for peers: reduce slot
//                             store C; rms_norm; store normed to all
//   pull:  exchange arrivals
//          for own rows by G: load residual; reduce partial; for peers: reduce theirs; store C; rms_norm
//                             store normed to all
//   both:  exchange arrivals: all rows are stored everywhere
//
// C goes to all GPUs too, or stays with its owner (`sums`). ROCm/aiter has the kernel with loads and the sum
// at the owner (aiter/ops/triton/comms/fused/reduce_scatter_rmsnorm_quant_all_gather.py, after ROCm/iris
// examples/22_rs_rmsnorm_fp8quant_ag); one workgroup per compute unit takes tiles for the sum and rows for
// the norm, and nothing orders the two. Here a workgroup keeps its row from the sum to the last store, as in
// modular/modular max/kernels/src/nn/allreduce_residual_rmsnorm_fp8.mojo.
//
// Rows of fp8 are rounded as they are stored. Their scale is known before the run and part of the weights, as
// with the scale factor of kARResidualRMSNormFP8Quant (NVIDIA/TensorRT-LLM, flashinfer-ai/flashinfer). aiter
// takes the scale of each row from its largest element, which is in registers, and keeps it at the owner: one
// more number per row, of which the schedule has nothing.
#pragma once

#include "model/parts/norm_rows.hpp"

namespace tritax {

void add_fused_two_shot(SumDraft& draft, const NormRows& norm);

}  // namespace tritax
