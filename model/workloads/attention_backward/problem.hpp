// Attention backward: the computation, and its cut into kernels and tiles (FlashAttention-2,
// arXiv:2307.08691, algorithm 2).
//
//   delta            per row of queries: δ = Σ dO∘O; and zeros where gradients of queries are added up
//   gradients        a workgroup per block of keys of a head of keys:
//                    for all query heads of its group, for all blocks of queries that see the keys:
//                    attend_backward; store dK beside dV
//   round_gradients  the sums of dQ, in fp32, to the type of the operands
//
// Keys and values lie side by side, and so do their gradients (the packed form of FlashAttention). Q, dO, O
// and log-sum-exps are inputs of any values: the formula holds for all of them, not only for results of
// forward.
#pragma once

#include "model/parts/attention_mapping.hpp"
#include "model/parts/attention_problem.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

struct BackwardKnobs {
  MatmulTile tile;  // m queries per step, n keys per workgroup, k columns
  KernelProfile profile = KernelProfile::interpreter;
};
BackwardKnobs backward_knobs_of(const AttentionProblem& problem, const Values& values);

// Resources of a workgroup. dK and dV lie in registers. Throws UserError where the tile does not fit.
//   waves of 64 lanes, mma.sync  K in LDS, V in registers; scores of 16 queries at a time
//   wgmma                        K and V in LDS, and dQ on its way to memory; scores of m queries, in
//                                registers that P, T and dQ take later
// Q and dO lie in LDS, two blocks of each unless the pipeline is serial; with wgmma one block of dO for heads
// of more than 128 columns.
Resources backward_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile);

// Sets the knobs to the tile of published kernels, halved until it fits:
//   wgmma                        FlashAttention-3, hopper/flash_bwd_launch_template.h, by columns of a head:
//                                up to 64: 128×128; 96: 64×128; 128: 80×128, causal 64×128;
//                                192: 64×96 with 12 waves; 256: 64×80; others with 8 waves
//   waves of 64 lanes            HipKittens, kernels/attn/gqa_backwards: 64×256 with 4 waves where the
//                                pipeline is interleaved; else half as many keys, for which two waves per
//                                SIMD have room
//   mma.sync                     FlashAttention-2, csrc/flash_attn/src/flash_bwd_launch_template.h: 64×128,
//                                8 waves
void assume_backward_tile(Values& values, const Gpu& gpu, const AttentionProblem& problem);

// Tiles that a search may try, as attend_tile_axis().
Axis backward_tile_axis(const Values& base, const Gpu& gpu, const AttentionProblem& problem);

// Throws UserError for impossible shapes or tiles.
Schedule backward_schedule(std::string_view name, Mapping mapping, const AttentionProblem& problem,
                           const BackwardKnobs& knobs, const Machine& machine);

// A lower bound of the time, from matrix and vector work of the gradients alone.
double backward_bound_ns(const AttentionProblem& problem, const BackwardKnobs& knobs, const Machine& machine);

}  // namespace tritax
