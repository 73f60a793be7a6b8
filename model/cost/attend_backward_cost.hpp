// Cost law of `attend_backward` on one compute unit, without contention: a tile of n keys and values of d
// columns, whose gradients lie in registers, against blocks of m queries and gradients of results that stream
// through LDS (FlashAttention-2, arXiv:2307.08691, algorithm 2).
//
// Per block, in cycles of the loaded clock:
//
//   t_matrix = 10·m·n·d / (flop_per_clk · issue_efficiency)   scores, dP, dV, dK and dQ
//   t_exp    = m·n / (4 · simds)                              one exponential per score
//   t_vector = (6·m·n + m·d) / (lanes · simds)                per score: scale, log-sum-exp, rounding of P,
//   δ,
//                                                             product with P, rounding of T; per gradient of
//                                                             a query: scale
//   t_port   = matmul_step_clk + (2·m·d·e + 8·m + 4·m·d) / cu_l2_bytes_per_clk
//                                                             Q, dO, log-sum-exps and δ; additions to dQ,
//                                                             fp32
//
// Traffic of LDS, which depends on how kernels share the products:
//
//   waves of 64 lanes (HazyResearch/HipKittens @f09e968, kernels/attn/gqa_backwards): w waves share the keys.
//   V stays in registers. Q and dO are written once; every wave reads both as rows and as columns. For each
//   16 queries the waves read all keys twice, as rows for the scores and as columns for dQ. T is written once
//   and read by every wave:
//     bytes = (2 + 4·w)·m·d·e + 2·n·d·e·m/16 + (1 + w)·m·n·e
//   with wgmma (FlashAttention-3, Dao-AILab/flash-attention hopper/mainloop_bwd_sm90_tma_gmma_ws.hpp): g =
//   n/64 warp groups share the keys. Scores and dP read keys or values, and queries for each group; dV and dK
//   have P and T in registers; dQ reads the keys, and T for each 64 columns; dQ passes through LDS on its way
//   to memory:
//     bytes = (3·n·d + 4·g·m·d + (1 + d/64)·m·n)·e + 8·m·d
//   mma.sync (FlashAttention-2, csrc/flash_attn/src/flash_bwd_launch_template.h: two rows of w/2 waves, for
//   scores and dQ by queries, for dK and dV by keys):
//     bytes = ((2·w + 2)·m·d + 6·n·d + (w/2 + 6)·m·n)·e
//
// Overlap as in forward (attend_cost.hpp): the pipelines serial and overlapped, the wave schedules, wgmma,
// and mma-sync, whose waves do all in turn. Interleaved waves also issue what moves: 16 bytes per lane and
// instruction, 8 where columns are read (ds_read_b64_tr_b16) and T is written, and an addition of 4 bytes.
// Consumers of the schedule `specialised` read Q and dO after the hand-over. With wgmma, the rows of an
// instruction are 64 keys.
//
// Example: 64 queries and 256 keys of 128 columns in bf16 on MI355X, four waves: 5,447 cycles of matrix work,
// 2,688 of vector work and 3,840 of LDS traffic, so 5,447 if all overlap. An interleaved wave issues for
// 5,600: 2,688, a quarter of 5,120 for matrix instructions, and 1,632 for what moves.
//
// Left out: barriers between the five products, which are dependent on each other, and the exchange of a
// transposed T between lanes.
#pragma once

#include "model/cost/attend_cost.hpp"

namespace tritax {

struct BackwardWork {
  std::int32_t keys = 0;
  std::int32_t cols = 0;  // of a head
  std::int32_t queries = 0;
  bool begins = true;  // fetches its keys and values, and waits for its first queries
};

// In the result: a: queries and log-sum-exps; b: gradients of results and δ; q: keys and values; sums:
// gradients of queries. Throws UserError if the GPU has no matrix instruction for the dtype. `tile`: n ≥
// keys, m queries per block.
AttendCost attend_backward_cost(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                                const Resources& resources, const BackwardWork& work);

// The cost of an operation that attends, forward or backward; `begins`: with the fetch of what it holds.
AttendCost attend_cost_of(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                          const Resources& resources, const Op& op, bool begins);

}  // namespace tritax
