// One kernel that multiplies, sums up in one shot and normalises. It replaces the GEMM kernel, so that
// nothing but the launch of that is left:
//
//   G workgroups:  for t in p', p'+G, …:
//     push:  matmul; store partial(t); for peers: store -> slot(t) there
//     pull:  matmul; store partial(t)
//                   for all ranks: arrived[row of tiles] += 1 there
//                  for rows p, p+G, …: wait for the tiles of all ranks in its row of tiles; load residual;
//                   reduce partial; for peers: reduce their slot (pull: their partial sums)
//                   store C; rms_norm; store normed
//
// What anybody waits for has been sent before it waits itself, so that nobody waits in vain.
#pragma once

#include "model/parts/norm_rows.hpp"

namespace tritax {

// Adds kernels and host programs to a draft with a product.
void add_fused_norm(SumDraft& draft);

}  // namespace tritax
