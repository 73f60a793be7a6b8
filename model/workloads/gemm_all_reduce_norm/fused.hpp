// One kernel that multiplies, sums up in one shot and normalises. It is the GEMM kernel itself, so that its
// launch is the only one:
//
//   G workgroups:  for t in p', p'+G, …:
//     push:  matmul; store partial(t); for peers: store -> slot(t) there
//     pull:  matmul; store partial(t)
//                   for all ranks: arrived[row of tiles] += 1 there
//                  for rows p, p+G, …: wait for the tiles of all ranks in its row of tiles; load residual;
//                   reduce partial; for peers: reduce their slot (pull: their partial sums)
//                   store C; rms_norm; store normed
//
// Every workgroup sends all data that others wait for before it waits itself, so that no wait is endless.
#pragma once

#include "model/parts/norm_rows.hpp"

namespace tritax {

// Adds kernels and host programs to a draft with a product.
void add_fused_norm(SumDraft& draft);

}  // namespace tritax
