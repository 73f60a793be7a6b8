// Cost law of `attend` on one compute unit, without contention: a tile of m queries of d columns, in the
// registers, against blocks of n keys and values that stream through LDS (FlashAttention-2,
// arXiv:2307.08691).
//
// Per block, in cycles of the loaded clock:
//
//   t_matrix = 4·m·n·d / (flop_per_clk · issue_efficiency)     scores, and results from weights and values
//   t_exp    = m·n / (4 · simds)                               one exponential a score
//   t_vector = (4·m·n + m·d) / (lanes · simds)                 a score: scaled, its maximum, its sum,
//                                                              rounded to the operand dtype;
//                                                              a result: rescaled
//   t_port   = matmul_step_clk + 2·n·d·e / cu_l2_bytes_per_clk keys and values through the CU's port
//   t_lds    = (1 + waves along m) · 2·n·d·e / lds_bytes_per_clk
//                                                              written, and read by every wave that has rows
//
//   serial pipeline:     t = max(t_matrix + t_exp + t_vector + t_lds, t_port), and waits
//   overlapped pipeline: t = max(t_matrix, t_exp + t_vector, t_lds, t_port)
//   with wgmma:          t = max(t_matrix + t_exp, t_port)
//
// Of wave schedules (model/schedule/wave_schedule.hpp) one wave of a SIMD computes at a time, products and
// softmax. It issues an instruction every 4 clocks at most (of 64 lanes: AMD CDNA3 ISA guide, §4); a matrix
// instruction of 16×16, which runs for 16, leaves three of four to others:
//
//   t_issue      = t_matrix at the peak / 4 + t_exp + t_vector
//   ping-pong:     t = max(t_matrix, t_issue, t_lds, t_port)
//   interleaved:   the same, and the wave also issues its loads, writes and reads of LDS, of 16 bytes a lane
//   producers:     t = max(max(t_matrix, t_exp + t_vector) + waves · 2·n·d·e / lds_bytes_per_clk, t_lds,
//                          t_port), consumers read a block when it is handed over, then compute
//
// In the serial pipeline keys and values are asked for when they are needed, as in kernels of one stage: each
// block waits twice for the latency of the level that has them, and for its bytes at the rate of a compute
// unit that streams from memory, in as much less time as the level is nearer. Other workgroups of the compute
// unit go on meanwhile. In the overlapped pipeline they arrive no faster than stage_interval_ns() says.
//
// Waves of 64 lanes issue exponentials and other vector instructions to one unit, of 16 lanes a SIMD and
// clock (AMD CDNA3 ISA guide, §4: a wave64 instruction takes four cycles); those of 32 to two, side by side,
// of 32 lanes (NVIDIA CUDA C++ Programming Guide, arithmetic throughput of compute capability 9.0: 128 and 16
// a clock and SM). Exponentials run at a quarter of 16 lanes a SIMD on both: on H100 16 a clock and SM beside
// 4,096 flops in fp16, so that a score of 128 columns, which takes 512 flops, is half as long at its
// exponential as at its products (FlashAttention-3, arXiv:2407.08608 §3.1). With wgmma, operands go from LDS
// as part of the instruction: each 64 rows read keys and values once, and queries.
//
// Kernels with wgmma hide the other vector instructions behind the matrix instructions of another warp group,
// but not the exponentials: FlashAttention-3 reaches 661 TFLOP/s with the overlap and 570 without (H100,
// heads of 128 columns, arXiv:2407.08608 §4.2), a gain of 1.16, where t_matrix + t_exp + t_vector over
// t_matrix + t_exp is 1.17. That nothing of the exponentials hides was chosen by cuDNN's times on H200
// (scenarios/measured/h200-1-attention-cudnn.csv) at head sizes 64 and 128.
//
// Kernels of the profile mma-sync (KernelCosts::attend_block_keys, n) are of FlashAttention-2's kind with 16
// rows of queries a wave: it loads K and V from LDS for them, and its queries, block by block, and products,
// softmax and loads are instructions of one wave in turn. Two waves a SIMD, between two barriers a block, are
// taken to overlap nothing:
//
//   t_lds = (1 + m / 16) · 2·n·d·e / lds_bytes_per_clk + m·d·e / lds_bytes_per_clk
//   t     = max(t_matrix + max(t_exp, t_vector) + t_lds, t_port), and the sum of both where one unit does
//   them
//
// with two blocks in LDS, one of them on its way, whatever the pipeline says, and nothing won by several
// workgroups on a compute unit: they are as many waves as one of twice the rows. Where there are asynchronous
// matrix instructions, synchronous ones (mma.sync) attain 62.9 % of the peak (arXiv:2501.12084, §6.2, table
// 7: microbenchmarks of an H800, mean over shapes and types; 65.3 % for fp16).
//
// Keys that a mask hides cost as much as others: patterns leave out whole blocks of them.
#pragma once

#include <array>
#include <cstdint>

#include "model/cost/matmul_cost.hpp"

namespace tritax {

struct AttendWork {
  std::int32_t rows = 0;  // queries
  std::int32_t cols = 0;  // of a head
  std::int32_t keys = 0;
  bool begins = true;  // it fetches its queries, and waits for its first keys
};

struct AttendCost {
  MatmulCost cost;                  // a: keys, b: values, q: queries
  double shared_speedup = 1;        // of several workgroups on a compute unit over one, at most
  std::int32_t stages = 1;          // blocks of keys and values that LDS holds
  double steps = 1;                 // blocks
  std::array<double, 3> wait_ns{};  // serial: for all from L2, last-level cache, memory, besides the work
  double from_llc_ns = 0;           // at least, if they come from the last-level cache
  double from_memory_ns = 0;        // at least, if they come from memory
};

// Throws UserError if the GPU has no matrix instruction for the dtype. `tile`: m ≥ rows, n keys a block.
AttendCost attend_cost(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                       const Resources& resources, const AttendWork& work);

}  // namespace tritax
