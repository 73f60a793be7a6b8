// Describes the kernel of a library, or of a published benchmark, that a kernel of a schedule stands for.
//
// A schedule means the same on every machine, so it has no rates and times of such kernels: it names the
// routine and the arguments that the library knows at the call. Rate, protocol and set-up time are looked up
// for the machine that runs the schedule (model/cost/kernel_rates.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/core/dtype.hpp"

namespace tritax {

enum class LibraryRoutine : std::uint8_t {
  none,            // not a library kernel
  plain,           // only the set-up time is known: sums of parts, norms
  gemm,            // rows that fast kernels accept
  gemm_even_rows,  // 16-bit, rows not aligned to 16 bytes, with an even number of elements
  gemm_odd_rows,   // 16-bit, rows with an odd number of elements
  block_copy,      // a framework's copy between a matrix and blocks of it
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  all_to_all,       // sends and receives
  vllm_all_reduce,  // kernels of serving engines beside the library's: model/parts/library_all_pairs.hpp
  sglang_all_reduce,
  trtllm_all_reduce,
  all_pairs,   // small all-reduces and all-to-alls over a full mesh
  posts,       // Triton's all-gather: a workgroup loads a piece, posts it to all peers, loads the next
  dispatches,  // a workgroup that stands for many small ones, which a die starts one after the other
  lookup,      // programs that find their work by dependent accesses of the L2
  attention,   // of a batch
};
inline constexpr std::array<std::string_view, 19> kLibraryRoutineNames{"none",
                                                                       "plain",
                                                                       "gemm",
                                                                       "gemm-even-rows",
                                                                       "gemm-odd-rows",
                                                                       "block-copy",
                                                                       "all-gather",
                                                                       "reduce-scatter",
                                                                       "all-reduce",
                                                                       "broadcast",
                                                                       "all-to-all",
                                                                       "vllm-all-reduce",
                                                                       "sglang-all-reduce",
                                                                       "trtllm-all-reduce",
                                                                       "all-pairs",
                                                                       "posts",
                                                                       "dispatches",
                                                                       "lookup",
                                                                       "attention"};

struct LibraryKernel {
  LibraryRoutine routine = LibraryRoutine::none;
  std::int32_t ranks = 0;  // ranks of a collective
  // Collective: bytes of the widest block of a rank; broadcast: all bytes; posts: bytes per post to one peer;
  // dispatches: bytes per small workgroup.
  double bytes = 0;
  std::int32_t channels = 0;  // of a collective; workgroups of a copy. They share its rate
  std::int32_t chunks = 0;    // all-reduce: chunks in which a channel adds up a block
  // Serial parts of the schedule that the time of the library's whole call contains: flags that cross a link,
  // and ways between nodes.
  std::int32_t flags = 0;
  std::int32_t crossings = 0;
  std::int32_t accesses = 0;  // of a lookup
  // GEMM, and the kernel that adds up its parts: sizes of the whole call, rows × columns × depth. 0: unknown.
  // Attention, and the kernel that merges its splits: queries of a sequence × keys × columns of a head.
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::int32_t depth = 0;
  std::int32_t sequences = 0;  // of attention
  std::int32_t heads = 0;      // of queries
  std::int32_t kv_heads = 0;
  DType dtype = DType::fp16;  // of its operands

  bool operator==(const LibraryKernel&) const = default;
};

// Counts of a LibraryKernel, with their names in a schedule's JSON and their limits.
struct LibraryKernelCount {
  const char* name;
  std::int32_t LibraryKernel::*member;
  std::int32_t most;
};
inline constexpr std::array<LibraryKernelCount, 12> kLibraryKernelCounts{{
    {"ranks", &LibraryKernel::ranks, INT16_MAX},
    {"channels", &LibraryKernel::channels, 1 << 24},
    {"chunks", &LibraryKernel::chunks, 1 << 24},
    {"flags", &LibraryKernel::flags, 1024},
    {"crossings", &LibraryKernel::crossings, 1024},
    {"accesses", &LibraryKernel::accesses, 1024},
    {"rows", &LibraryKernel::rows, INT32_MAX},
    {"columns", &LibraryKernel::columns, INT32_MAX},
    {"depth", &LibraryKernel::depth, INT32_MAX},
    {"sequences", &LibraryKernel::sequences, INT32_MAX},
    {"heads", &LibraryKernel::heads, INT32_MAX},
    {"kv_heads", &LibraryKernel::kv_heads, INT32_MAX},
}};

constexpr bool is_collective(LibraryRoutine routine) {
  return routine >= LibraryRoutine::all_gather && routine <= LibraryRoutine::trtllm_all_reduce;
}

// Routines of a serving engine rather than of the collective library.
constexpr bool is_custom(LibraryRoutine routine) {
  return routine >= LibraryRoutine::vllm_all_reduce && routine <= LibraryRoutine::trtllm_all_reduce;
}

// Every rank ends with the sum.
constexpr bool is_all_reduce(LibraryRoutine routine) {
  return routine == LibraryRoutine::all_reduce || is_custom(routine);
}

}  // namespace tritax
