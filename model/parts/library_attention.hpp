// The attention of a vendor's library: the tile and the splits of the keys that it picks, as far as public
// sources tell.
//
// FlashAttention-3 (Dao-AILab/flash-attention, hopper/tile_size.h and heuristics.h), 16-bit, causal:
//
//   columns of a head     queries × keys of a tile
//   up to 64              192 × 128, or 64 × 192 with at most 64 rows
//   up to 96              192 × 144
//   up to 128             128 × 128, or 64 × 128 with at most 64 rows
//   up to 192             128 × 112
//   up to 256             128 × 80
//
// A tile has the rows of all query heads that share a head of keys. With fewer tiles than 0.8 per compute
// unit, and with more than four blocks of keys, the keys are split: into the fewest splits that fill at least
// 0.85 of what the best number of splits fills of whole rounds of the compute units. Another kernel merges.
// Where lengths lie on the device, as with a paged cache, a kernel of one workgroup first counts the blocks
// of each sequence (vllm-project/flash-attention hopper/flash_prepare_scheduler.cu).
//
// Example: 4 sequences of 8 heads of 4,096 keys on 132 compute units have 32 tiles of 32 blocks of keys. Four
// splits fill 0.97 of a round, three 0.73: four.
//
// Other GPUs take the largest of these tiles that fits a compute unit. On AMD decode splits the keys of every
// sequence into partitions of 256, without a first kernel (vllm-project/vllm csrc/rocm/attention.cu). Sources
// of FlashInfer's kernels for Blackwell do not tell their rule; FlashAttention-3's is taken. Times come from
// attend_cost.hpp with the profile of a vendor, and from tables of measured calls
// (model/machine/library_table.hpp).
#pragma once

#include <cstdint>

#include "model/machine/library_table.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

struct LibraryAttention {
  MatmulTile tile;
  std::int64_t splits = 1;  // of the keys
  bool prepares = false;    // with a kernel that counts blocks first
};

// Throws UserError where no tile fits.
LibraryAttention library_attention(const Machine& machine, DType dtype, const AttentionCall& call);

// The call as a kernel of a schedule names it; `routine`: attention, or plain for the kernel that merges.
LibraryKernel library_kernel_of(LibraryRoutine routine, DType dtype, const AttentionCall& call);

// Splits of `blocks` blocks of keys with `tiles` tiles on `units` compute units.
std::int64_t splits_of_keys(std::int64_t tiles, std::int64_t units, std::int64_t blocks);

}  // namespace tritax
