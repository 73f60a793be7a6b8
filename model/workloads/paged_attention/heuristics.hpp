// Choices that the authors of the Triton paged-attention kernel make without an autotuner (arXiv:2511.11581
// §5, listing 2, and the decision trees of foundation-model-stack/vllm-triton-backend), as data.
//
// Every node of a tree compares a property of the batch with a limit; the left branch is for at most the
// limit. Leaves are (keys at a time, rows of a query block, stages, warps).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "model/machine/machine.hpp"
#include "model/workloads/paged_attention/grid.hpp"

namespace tritax {

struct BatchShape {
  double mean_queries = 1;  // per sequence
  std::int64_t most_queries = 1;
  std::int64_t most_keys = 1;
};
BatchShape shape_of(std::span<const PagedSequence> sequences);

struct KernelChoice {
  std::int32_t tile = 16;        // keys at a time
  std::int32_t block_rows = 16;  // of queries
  std::int32_t stages = 0;       // 0: Triton's default, 3 on NVIDIA and 2 on AMD
  std::int32_t warps = 4;
  friend bool operator==(const KernelChoice&, const KernelChoice&) = default;
};

// Listing 2: BLOCK_M = 64 on NVIDIA with prompts of 4,096 tokens and more, else 16; BLOCK_N = 32 with at most
// 64 keys, with prompts of at most 4,096 tokens on average, or on AMD, else 64.
KernelChoice choice_of_listing(const BatchShape& shape, bool nvidia);

// The tree for H100 on NVIDIA and for MI300 on AMD.
KernelChoice choice_of_tree(const BatchShape& shape, bool nvidia);

// Whether keys are split: where all sequences decode, and the grid without splitting, sequences × heads of
// keys, has at most 128 programs.
bool splits_keys(const BatchShape& shape, std::size_t sequences, std::int64_t kv_heads);

// Whether loads of a loop with `stages` stages arrive while another block is processed: with two or more
// stages, and by default.
constexpr bool is_pipelined(std::int32_t stages) { return stages != 1; }

// Segments, where keys are split.
inline constexpr std::int64_t kUsualSegments = 16;

}  // namespace tritax
