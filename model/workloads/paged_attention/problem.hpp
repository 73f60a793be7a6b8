// Paged attention: what is computed, and what its patterns share.
//
//   O[s, t, h] = softmax(Q[s, t, h]·K[s, h div G]ᵀ / √d)·V[s, h div G]    s sequence, t token, h query head,
//                                                     G query heads to one of keys; causal
//
// A sequence has so many keys in a cache, of which its new tokens are the last: one where it decodes, a
// prompt or part of one where it is filled. Q and O are in order of head of keys, token, head of the group,
// so that a query block is a rectangle. The cache is in pages of so many tokens; a sequence begins with a
// page.
//
// What pages cost. The physical page of a key stands in a block table, 4 bytes a page, which a workgroup
// reads before keys and values: 4 bytes on 2·page·d·e, a thousandth at pages of 16, are left out, the latency
// is not. A row of a head, d·e bytes, is the longest piece that lies together in vLLM's cache (page, token,
// head, column), so where a page ends asks for no request more; a page of whole rows is a multiple of what
// DRAM channels interleave. Until its first keys are under way a program makes
//
//     ceil(log2 sequences) + 2   accesses that wait for each other, to what an L2 has:
//
// the search for its sequence, the lengths of that, the table. Further entries of the table come beside the
// keys before. So pages lie one behind the other in the buffers here: which ones they are changes neither
// result nor time. A kernel whose tile is a page takes no more keys at a time than that has, and here pages
// cost most: `tile` of the patterns.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/workload.hpp"
#include "model/workloads/paged_attention/grid.hpp"

namespace tritax {

struct PagedProblem {
  std::vector<PagedSequence> sequences;
  std::int64_t heads = 1;  // of queries
  std::int64_t kv_heads = 1;
  std::int64_t depth = 128;  // columns of a head
  std::int64_t page = 16;    // keys
  DType dtype = DType::fp16;

  std::int64_t group() const { return heads / kv_heads; }
};
PagedProblem paged_problem_of(const Problem& problem);

struct PagedKnobs {
  bool by_head = false;               // a workgroup a token and query head; else a query block
  MatmulTile tile;                    // rows of a query block × keys at a time × columns of a head
  std::string_view tile_is = "tile";  // what a user makes smaller where the tile does not fit
  std::int64_t segments = 1;          // of keys; from two on a second kernel merges
  std::int64_t programs = 0;          // that go through all blocks; 0: a workgroup each
  bool graph = false;
  std::int64_t captured = 0;  // tokens of the batch that the graph is for; 0: of this one
  double call_ns = 0;         // host time of a launch outside a graph, beyond the machine's
  double rest_ns = 0;         // of the GPU behind each layer
  std::int64_t layers = 1;
};

// Of a workgroup that attends. Throws UserError that names `knob` where the tile does not fit.
Resources paged_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile, std::string_view knob);

// Throws UserError for what is too large, and for graphs that are too small.
Schedule paged_schedule(std::string_view name, const PagedProblem& problem, const PagedKnobs& knobs,
                        const Machine& machine);

// A lower bound of its time: every key and value from memory once, and the rest of the layers.
double paged_bound_ns(const PagedProblem& problem, const PagedKnobs& knobs, const Machine& machine);

}  // namespace tritax
