// Parts of the cost laws of attention forward and backward: rates, and what follows from blocks that stream
// past the tile of a workgroup. Internal to model/cost.
#pragma once

#include "model/cost/attend_cost.hpp"

namespace tritax {

// Rows or columns of an operand that a matrix instruction has at least.
inline constexpr std::int32_t kLeastEdge = 16;
inline constexpr double kExpPerSimd = 4;  // per clock
// For waves of 64 lanes: clocks between two instructions of one wave, clocks of a 16×16 matrix instruction,
// and the most bytes that a lane moves per instruction.
inline constexpr double kIssueClk = 4;
inline constexpr double kMatrixInstructionClk = 16;
inline constexpr double kBytesOfInstruction = 16;
inline constexpr double kPeakShareOfMmaSync = 0.629;  // on GPUs with wgmma

inline double rounded_up(std::int32_t value, std::int32_t to) { return (value + to - 1) / to * to; }

// Whether waves multiply, do vector work and read LDS in turn: the profile mma-sync.
inline bool works_in_turn(const KernelCosts& costs) { return costs.attend_block_keys > 0; }

struct StreamedBlocks {
  double clocks = 0;         // of a block
  double shared_clocks = 0;  // of a block, where other workgroups fill all waits
  std::int32_t rows = 0;     // of a block, in both of its operands
  std::int32_t cols = 0;
  double count = 1;
  double stream_bytes = 0;  // of each of both operands, all blocks
  bool in_turn = false;     // LDS holds as many blocks as with works_in_turn()
  double held_bytes = 0;    // what the workgroup fetches first and holds; 0: nothing
};

// Throws UserError if the GPU has no matrix instruction for the dtype.
const MatrixRate& rate_of_attention(const Gpu& gpu, DType dtype);

// All but the flops.
AttendCost cost_of_blocks(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile,
                          const Resources& resources, const StreamedBlocks& blocks);

}  // namespace tritax
