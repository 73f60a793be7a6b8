// The K step of a lowered tile of a matmul or of attention as a board (k_step.hpp): the instructions of one
// wave, and their dependences.
//
// A wave's product of a step is cut along K into pieces of one read of 16 bytes per lane (16 elements of fp16
// for 32×32×8). Each piece has its reads and its matrix instructions. The two sets of fragment registers take
// pieces in turn, so that the reads of a piece wait for the matrix instructions of the piece two before it.
// Instructions on one accumulator follow each other at the interval of the matrix core, which forwards the
// accumulator. Operands of stage t + d are requested in turn t, with d the prefetch distance. In LDS
//
//   one stage      reads - barrier - writes of the next stage - barrier
//   two or more    writes of a later stage beside the reads, and one barrier at the end of a turn
//
// Where operands pass through registers, each load waits for the write that empties its registers; copies
// need no registers, and a copy engine gets one instruction per operand. Through the cache there is no LDS:
// prefetches run d turns ahead, and loads from L1 replace reads.
//
// Cycles. Matrix core: interval_clk(). LDS: the bytes of one instruction of every wave that has a turn on the
// SIMDs, over lds_bytes_per_clk. Memory path: the same over cu_l2_bytes_per_clk. Latency of L2: from the
// machine file, at the boost clock. Latency of LDS: 64 cycles on AMD parts (the maximum in LLVM's AMDGPU
// scheduling model, SISchedule.td); 23 cycles on NVIDIA parts, a load on A100 (H. Abdelkhalik et al.,
// arXiv:2208.11174; no other part needs the value here, because wgmma reads LDS itself). Latency of L1 of
// Xe-HPC: 120 cycles, as of MI300X (RRZE-HPC/gpu-benches gpu-latency), for want of a figure. A barrier costs
// the waiting time of its waves. An instruction issues in one cycle on NVIDIA and Intel parts and in four on
// AMD parts, where SIMDs take turns (AMD CDNA3 ISA guide, §4). Eight instructions queue in front of LDS and
// of the memory path: assumed, for want of a published number.
//
// Left out: addresses and loop counters, bank conflicts, register ports, and the power that matrix
// instructions draw.
#pragma once

#include "model/parts/levels/k_step.hpp"
#include "model/parts/levels/levels.hpp"

namespace tritax {

struct KStepOptions {
  double memory_latency_ns = 0;  // of operands; 0: the latency of L2
  // Fragments of the first piece are read at the end of the turn before, behind its last barrier, as
  // hand-written kernels do. Otherwise every turn begins with reads, and its first matrix instructions wait
  // for them.
  bool reads_ahead = false;
  // For attention: a turn multiplies the scores of the next block while it takes the softmax of its own
  // scores (FlashAttention-3, arXiv:2407.08608 §3.2). Otherwise each turn waits for its own scores.
  bool scores_ahead = false;
  // Rules of a game over machine code (arXiv:2501.08071): nothing passes a barrier, and no scoreboard guards
  // the operands of a matrix instruction, so that 5 cycles of stall counts must lie between the instruction
  // and the read that overwrites its operands (its usual window).
  bool as_machine_code = false;
};

// A step of attention is one block of keys and values; k_step_of_attention.cpp lists its instructions.
//
// Throws UserError for products of more than kMostStepInstructions instructions, and with scores_ahead where
// registers do not hold the scores of two blocks.
KStep k_step_of(const Gpu& gpu, const Levels& levels, const KStepOptions& options = {});

inline constexpr std::int32_t kMostStepInstructions = 10000;

}  // namespace tritax
