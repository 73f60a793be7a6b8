// The K step of a lowered tile of a matmul or of attention as a board (k_step.hpp): the instructions of one
// wave, and what they wait for.
//
// A wave's product of a step is cut along K into as much as one read of 16 bytes a lane brings (16 elements
// of fp16 for 32×32×8); each piece has its reads and its matrix instructions, and the two sets of fragment
// registers take pieces in turn, so that the reads of a piece wait for the matrix instructions of the one but
// last. Instructions of one accumulator follow each other at the interval of the matrix core, which forwards
// it. Operands of stage t + d are asked for in turn t, d the prefetch distance. In LDS
//
//   one stage      reads - barrier - writes of the next stage - barrier
//   two or more    writes of a later stage beside the reads, and one barrier at the end of a turn
//
// by registers, each load waits for the write that empties its registers; a copy needs none, and a copy
// engine is asked by one instruction an operand. Through the cache there is no LDS: prefetches d turns ahead,
// and loads out of L1 in place of reads.
//
// Cycles. The matrix core: interval_clk(). LDS: the bytes of an instruction of every wave that a turn of the
// SIMDs brings, over lds_bytes_per_clk. The memory path likewise, over cu_l2_bytes_per_clk. Latencies: of L2
// from the machine file, at its boost clock; of LDS 64 cycles on AMD parts (the most that LLVM's AMDGPU
// scheduling model has, SISchedule.td); on NVIDIA's 23, a load on A100 (H. Abdelkhalik et al.,
// arXiv:2208.11174; wgmma reads itself, so that no other part asks for it here); of L1 of Xe-HPC 120, as of
// MI300X (RRZE-HPC/gpu-benches gpu-latency), for want of a figure. A barrier costs what its waves
// wait. An instruction issues in one cycle on NVIDIA and Intel parts and in four on AMD's, whose SIMDs take
// turns (AMD CDNA3 ISA guide, §4). Eight instructions queue in front of LDS and memory path: assumed; nothing
// published says how many.
//
// Left out: addresses and loop counters, bank conflicts, the registers' own ports, and that matrix
// instructions draw power.
#pragma once

#include "model/parts/levels/k_step.hpp"
#include "model/parts/levels/levels.hpp"

namespace tritax {

struct KStepOptions {
  double memory_latency_ns = 0;  // of operands; 0: that of L2
  // Fragments of the first piece are read at the end of the turn before, behind its last barrier, as
  // hand-written kernels do; otherwise every turn begins with reads that its first matrix instructions wait
  // for.
  bool reads_ahead = false;
  // Of attention: a turn multiplies the scores of the next block while it takes the softmax of its own
  // (FlashAttention-3, arXiv:2407.08608 §3.2); otherwise each waits for its own scores.
  bool scores_ahead = false;
  // As a game over machine code has it (arXiv:2501.08071): nothing passes a barrier, and no scoreboard guards
  // the operands of a matrix instruction, so that 5 cycles of stall counts have to lie between it and the
  // read that overwrites them (its usual window).
  bool as_machine_code = false;
};

// The step of attention is a block of keys and values: k_step_of_attention.cpp says what it is made of.
//
// Throws UserError for products of more than kMostStepInstructions instructions, and with scores_ahead where
// registers do not hold the scores of two blocks.
KStep k_step_of(const Gpu& gpu, const Levels& levels, const KStepOptions& options = {});

inline constexpr std::int32_t kMostStepInstructions = 10000;

}  // namespace tritax
