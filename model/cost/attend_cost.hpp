// Cost law of `attend` on one compute unit, without contention: a tile of m queries of d columns, in the
// registers, against blocks of n keys and values that stream through LDS (FlashAttention-2,
// arXiv:2307.08691).
//
// Per block, in cycles of the loaded clock:
//
//   t_matrix = 4·m·n·d / (flop_per_clk · issue_efficiency)     scores, and results from weights and values
//   t_exp    = m·n / (4 · simds)                               one exponential per score
//   t_vector = (4·m·n + m·d) / (lanes · simds)                 per score: scale, maximum, sum,
//                                                              rounding to the operand dtype;
//                                                              per result: rescaling
//   t_port   = matmul_step_clk + 2·n·d·e / cu_l2_bytes_per_clk keys and values through the CU's port
//   t_lds    = (1 + waves along m) · 2·n·d·e / lds_bytes_per_clk
//                                                              writes, and reads by every wave with rows
//
//   serial pipeline:     t = max(t_matrix + t_exp + t_vector + t_lds, t_port), and waits
//   overlapped pipeline: t = max(t_matrix, t_exp + t_vector, t_lds, t_port)
//   with wgmma:          t = max(t_matrix + t_exp, t_port)
//
// With wave schedules (model/schedule/wave_schedule.hpp) one wave per SIMD computes at a time, products and
// softmax. A wave of 64 lanes issues at most one instruction per 4 clocks (AMD CDNA3 ISA guide, §4). A 16×16
// matrix instruction runs for 16 clocks and leaves three of four issue slots to other instructions:
//
//   t_issue      = t_matrix at the peak / 4 + t_exp + t_vector
//   ping-pong:     t = max(t_matrix, t_issue, t_lds, t_port)
//   interleaved:   the same, and the wave also issues its loads, writes and reads of LDS, 16 bytes per lane
//   producers:     t = max(max(t_matrix, t_exp + t_vector) + waves · 2·n·d·e / lds_bytes_per_clk, t_lds,
//                          t_port), consumers read a block after the hand-over, then compute
//
// In the serial pipeline a block requests keys and values when it needs them, as in kernels with one stage.
// Each block waits twice for the latency of the level that holds the data, and for its bytes at the rate of a
// compute unit that streams from memory, scaled by the latency of the level. Other workgroups of the compute
// unit continue during these waits. In the overlapped pipeline keys and values arrive no faster than
// stage_interval_ns() allows.
//
// Waves of 64 lanes issue exponentials and other vector instructions to one unit of 16 lanes per SIMD and
// clock (AMD CDNA3 ISA guide, §4: a wave64 instruction takes four cycles). Waves of 32 lanes issue them to
// two parallel units of 32 lanes (NVIDIA CUDA C++ Programming Guide, arithmetic throughput of compute
// capability 9.0: 128 and 16 per clock and SM). On both, exponentials run at a quarter of 16 lanes per SIMD:
// H100 has 16 per clock and SM beside 4,096 flops in fp16. So a score of 128 columns, which takes 512 flops,
// spends half as long in its exponential as in its products (FlashAttention-3, arXiv:2407.08608 §3.1). With
// wgmma the instruction reads its operands from LDS: each 64 rows read keys and values once, and queries.
//
// Kernels with wgmma hide the other vector instructions behind the matrix instructions of another warp group,
// but not the exponentials: FlashAttention-3 reaches 661 TFLOP/s with the overlap and 570 without (H100,
// heads of 128 columns, arXiv:2407.08608 §4.2), a gain of 1.16, where t_matrix + t_exp + t_vector over
// t_matrix + t_exp is 1.17. The assumption that no exponential is hidden follows from the times of cuDNN on
// H200 (scenarios/measured/h200-1-attention-cudnn.csv) at head sizes 64 and 128.
//
// Kernels of the profile mma-sync (KernelCosts::attend_block_keys, n) work like FlashAttention-2, with 16
// rows of queries per wave. For each block a wave loads K, V and its queries from LDS; products, softmax and
// loads are instructions of one wave in turn. The law assumes no overlap between two waves per SIMD, which
// run between two barriers per block:
//
//   t_lds = (1 + m / 16) · 2·n·d·e / lds_bytes_per_clk + m·d·e / lds_bytes_per_clk
//   t     = max(t_matrix + max(t_exp, t_vector) + t_lds, t_port), and t_exp + t_vector instead
//           of their maximum if one unit does both
//
// LDS holds two blocks, one of them in flight, with any pipeline. Several workgroups on a compute unit gain
// nothing: they have as many waves as one workgroup with twice the rows. On GPUs with asynchronous matrix
// instructions, synchronous ones (mma.sync) reach 62.9 % of the peak (arXiv:2501.12084, §6.2, table 7:
// microbenchmarks of an H800, mean over shapes and types; 65.3 % for fp16).
//
// Kernels that a compiler makes from tiles (KernelCosts::compiled_attention, Triton) use synchronous matrix
// instructions below 64 rows of queries: then this law holds for them too, with the keys of their tile. From
// 64 rows on they use wgmma, but one group of waves multiplies and weighs in turn: t_matrix + t_exp +
// t_vector. They mask every block: six more instructions per score (arXiv:2511.11581, listings).
//
// In either case a block is also a chain of dependent instructions: products along a head, maximum and sum
// across waves through LDS, weights from registers to operands, products along the keys. Besides the work
// above it takes, for any number of keys,
//
//   t_chain = attend_chain_time · (0.3 + 0.7·d/128)
//
// and other workgroups of the unit fill it. Both numbers are the part of a step that does not grow with its
// keys, 1.0 us at 128 columns and 0.65 us at 64 (H200, scenarios/measured/h200-1-attend-steps.csv, four
// waves).
//
// Masked keys cost as much as other keys: patterns leave out whole blocks of masked keys.
#pragma once

#include <array>
#include <cstdint>

#include "model/cost/matmul_cost.hpp"

namespace tritax {

struct AttendWork {
  std::int32_t rows = 0;  // queries
  std::int32_t cols = 0;  // of a head
  std::int32_t keys = 0;
  bool begins = true;  // fetches its queries and waits for its first keys
};

struct AttendCost {
  MatmulCost cost;                  // a: keys, b: values, q: queries; backward: attend_backward_cost.hpp
  double shared_speedup = 1;        // at most, of several workgroups on a compute unit over one
  std::int32_t stages = 1;          // blocks of keys and values that LDS holds
  double steps = 1;                 // blocks
  std::array<double, 3> wait_ns{};  // serial: if all data come from L2, last-level cache, memory
  double from_llc_ns = 0;           // at least, if the data come from the last-level cache
  double from_memory_ns = 0;        // at least, if the data come from memory
};

// Throws UserError if the GPU has no matrix instruction for the dtype. `tile`: m ≥ rows, n keys per block.
AttendCost attend_cost(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                       const Resources& resources, const AttendWork& work);

}  // namespace tritax
