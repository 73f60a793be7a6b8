// Paged attention: the computation, and the common parts of its patterns.
//
//   O[s, t, h] = softmax(Q[s, t, h]·K[s, h div G]ᵀ / √d)·V[s, h div G]    s sequence, t token, h query head,
//                                                     G query heads to one of keys; causal
//
// A sequence has keys in a cache; its new tokens are the last of these keys: one token in decoding, a prompt
// or part of a prompt in prefill. Q and O are in order of head of keys, token, head of the group, so that a
// query block is a rectangle. The cache consists of pages of `page` tokens; a sequence begins at a page
// border.
//
// Cost of pages. A block table holds the physical page of each key, 4 bytes per page, which a workgroup reads
// before keys and values. The 4 bytes per 2·page·d·e, a thousandth with pages of 16, are left out; the
// latency is not. A row of a head, d·e bytes, is the longest contiguous piece in vLLM's cache (page, token,
// head, column), so that the end of a page adds no request; a page of whole rows is a multiple of the
// interleaving of DRAM channels. Before its first keys are under way, a program makes
//
//     ceil(log2 sequences) + 2   dependent accesses to data in an L2:
//
// the search for its sequence, the lengths of the sequence, the table. Later entries of the table arrive
// beside the keys before them. Therefore pages lie one after the other in the buffers here: other pages
// change neither result nor time. A kernel whose tile is a page takes at most one page of keys at a time, and
// this is the largest cost of pages: `tile` of the patterns.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/machine/library_table.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/workload.hpp"
#include "model/workloads/paged_attention/grid.hpp"

namespace tritax {

struct PagedProblem {
  std::vector<PagedSequence> sequences;
  std::int64_t heads = 1;  // of queries
  std::int64_t kv_heads = 1;
  std::int64_t depth = 128;  // columns per head
  std::int64_t page = 16;    // keys per page
  DType dtype = DType::fp16;

  std::int64_t group() const { return heads / kv_heads; }
};
PagedProblem paged_problem_of(const Problem& problem);

struct PagedKnobs {
  bool by_head = false;               // one workgroup per token and query head; else per query block
  MatmulTile tile;                    // rows of a query block × keys at a time × columns of a head
  std::string_view tile_is = "tile";  // name of the knob to make smaller where the tile does not fit
  std::int64_t segments = 1;          // of keys; from two on a second kernel merges
  std::int64_t programs = 0;          // programs that go through all blocks; 0: one workgroup per block
  bool graph = false;
  std::int64_t captured = 0;  // tokens of the batch that the graph was captured for; 0: of this batch
  double call_ns = 0;         // host time of a launch outside a graph, beyond the machine's
  double rest_ns = 0;         // of other kernels on the GPU behind each layer
  std::int64_t layers = 1;
  bool vendor = false;    // the library's kernels, which are looked up by `call`
  bool prepares = false;  // it has a kernel that counts blocks first
  AttentionCall call;
};

// The batch as a call of a library: as many equal sequences, with the mean of queries and of keys.
AttentionCall attention_call_of(const PagedProblem& problem);

// Resources of an attending workgroup. Throws UserError that names `knob` where the tile does not fit.
Resources paged_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile, std::string_view knob);

// Throws UserError for too large problems, and for graphs that are too small.
Schedule paged_schedule(std::string_view name, const PagedProblem& problem, const PagedKnobs& knobs,
                        const Machine& machine);

// A lower bound of the time: every key and value from memory once, and the other kernels of the layers.
double paged_bound_ns(const PagedProblem& problem, const PagedKnobs& knobs, const Machine& machine);

}  // namespace tritax
