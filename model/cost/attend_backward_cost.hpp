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
//                                                             product with P, rounding of T;
//                                                             per element of dQ: scale
//   t_port   = matmul_step_clk + (2·m·d·e + 8·m + 4·m·d) / cu_l2_bytes_per_clk
//                                                             Q and dO; log-sum-exps and δ, fp32;
//                                                             additions to dQ, fp32
//
// lanes: 16 in waves of 64 lanes, which issue exponentials and other vector work to one unit; 32 in others,
// which issue them to two (attend_cost.hpp). With fewer waves than SIMDs, simds and flop_per_clk count only
// those that a wave runs on.
//
// Traffic of LDS, which depends on how kernels share the products:
//
//   waves of 64 lanes (HazyResearch/HipKittens @f09e968, kernels/attn/gqa_backwards): w waves share the keys.
//   V stays in registers. Q and dO are written once; every wave reads both as rows and as columns. For each
//   16 queries the waves read all keys twice, as rows for the scores and as columns for dQ. T is written once
//   and read by every wave:
//     bytes = (2 + 4·w)·m·d·e + 2·n·d·e·m/16 + (1 + w)·m·n·e
//   with wgmma (FlashAttention-3, Dao-AILab/flash-attention hopper/mainloop_bwd_sm90_tma_gmma_ws.hpp):
//   g = n/64 warp groups share the keys. Scores read keys and dP values, and each group reads Q or dO; dV and
//   dK have P and T in registers; dQ reads the keys, and T for each 64 columns; dQ passes through LDS on its
//   way to memory:
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
//   overlapped:   t = max(t_matrix + t_exp + t_vector + t_exchange, t_lds, t_port)
//                 t_exchange: between two barriers, waves write and read T, (1 + w)·m·n·e bytes
//   ping-pong:    t = max(t_matrix + t_exp + t_vector, t_lds, t_port)
//                 the other wave of the SIMD moves data
//   interleaved:  t = max(t_matrix, t_issue, t_lds, t_port)
//                 t_issue: a quarter of t_matrix at the peak rate, t_exp + t_vector, and 4 clocks per
//                 instruction that moves data: 16 bytes per lane; 8 where columns are read
//                 (ds_read_b64_tr_b16) and where T is written; 4 in an addition to dQ
//   specialised:  t = max(t_matrix + t_exp + t_vector + t_reads, t_lds, t_port)
//                 t_reads: all waves read Q and dO after the hand-over, w·4·m·d·e bytes
//   wgmma:        t = max(max(t_matrix, t_lds) + t_exp, t_port), serial: t_vector besides; as in forward.
//                 An instruction has 64 keys as rows.
//   mma-sync:     t = max(t_matrix + max(t_exp, t_vector) + t_lds, t_port), waves of 64 lanes: t_exp +
//                 t_vector instead of their maximum; as in forward
//
// Several workgroups on a compute unit fill each other's waits, up to max(t_matrix, t_exp + t_vector, t_lds,
// t_port); with wgmma and mma-sync up to the law of the overlapped pipeline.
//
// Example: 64 queries and 256 keys of 128 columns in bf16 on MI355X, four waves: 5,447 cycles of matrix work,
// 2,688 of vector work, 3,840 of LDS traffic, 640 of them for T. Overlapped they take 8,775; interleaved
// 5,600: 2,688 of vector work, a quarter of 5,120 at the peak rate, and 1,632 to move data.
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
// gradients of queries. Throws UserError if the GPU has no matrix instruction for the dtype. `tile`: m
// queries per block, n keys, at least `keys`.
AttendCost attend_backward_cost(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                                const Resources& resources, const BackwardWork& work);

// The cost of an operation that attends, forward or backward; `begins`: with the fetch of what it holds.
AttendCost attend_cost_of(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                          const Resources& resources, const Op& op, bool begins);

}  // namespace tritax
