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
// Overlap. P follows from the scores, T from P and dP, and the other three products from P and T. HipKittens'
// compiled kernels, with four and with eight waves (analysis/attn/bkwd/benchmark/attn_bkwd_non_causal_{4,8}_
// warps.cpp), have a barrier between these steps, so that the vector work of a step follows its products;
// loads for the next step hide behind them. In assembly (attn_bkwd_non_causal_HNB.cpp) vector instructions of
// one product stand between the matrix instructions of another.
//
//   serial:       t = max(t_matrix + t_exp + t_vector + t_lds, t_port), and waits (attend_cost.hpp)
//   overlapped:   t = max(t_matrix + t_exp + t_vector + t_exchange, t_lds, t_port), where waves write and
//   read T,
//                 (1 + w)·m·n·e bytes, between two barriers
//   ping-pong:    t = max(t_matrix + t_exp + t_vector, t_lds, t_port); the other wave of the SIMD moves data
//   interleaved:  t = max(t_matrix, t_issue, t_lds, t_port); t_issue: a quarter of the matrix work at its
//   peak,
//                 vector work, and what moves: 16 bytes per lane and instruction, 8 where columns are read
//                 (ds_read_b64_tr_b16) and T is written, 4 of an addition, 4 clocks each
//   specialised:  t = max(t_matrix + t_exp + t_vector + reads of Q and dO after the hand-over, t_lds, t_port)
//   wgmma:        t = max(max(t_matrix, t_lds) + t_exp, t_port), as in forward; rows of an instruction are 64
//   keys mma-sync:     t = max(t_matrix + max(t_exp, t_vector) + t_lds, t_port), as in forward
//
// Several workgroups on a compute unit fill each other's waits, up to max(t_matrix, t_exp + t_vector, t_lds,
// t_port).
//
// Example: 64 queries and 256 keys of 128 columns in bf16 on MI355X, four waves: 5,447 cycles of matrix work,
// 2,688 of vector work, 3,840 of LDS traffic, 640 of them for T. Overlapped they take 8,775; interleaved
// 5,600: 2,688, a quarter of 5,120, and 1,632 for what moves.
//
// Left out: the time of barriers, and the exchange of a transposed T between lanes.
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
