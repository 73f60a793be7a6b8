// The grids of a paged-attention kernel in Triton: the queries of each program, and the part of the keys that
// it goes through (arXiv:2511.11581 §4; vllm-project/vllm `triton_unified_attention`).
//
// The tokens of all sequences lie one after the other; cu[s] is the first token of sequence s. G query heads
// share a head of keys. A *query block* is up to BLOCK_M rows: BLOCK_Q = BLOCK_M div G tokens of a sequence
// by the G heads of one head of keys. The host knows only totals, so it launches an upper bound of the number
// of blocks,
//
//     P = tokens div BLOCK_Q + sequences
//
// and program p finds its sequence by binary search: the last s with cu[s] div BLOCK_Q + s <= p. Its block
// within the sequence is the difference. A program ends at once if its block begins behind the last query.
//
// Example: G = 4, BLOCK_M = 16, queries 5, 1, 9: cu = 0, 5, 6; keys 0, 2, 3; P = 15 div 4 + 3 = 6. Programs 0
// and 1 have blocks 0 and 1 of sequence 0, program 2 has sequence 1, programs 3 to 5 have sequence 2. With
// queries 4, 1, 8 there are 6 programs too, of which 1 and 5 end at once.
//
// *Segments* split the keys of a sequence: with n segments, and TILE keys at a time, each segment has
// ceil(length / (n TILE)) tiles; segments without tiles end at once. 5000 keys in 16 segments with tiles of
// 16 are 20 tiles = 320 keys per segment; 100 keys are one tile in each of 7 segments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tritax {

struct PagedSequence {
  std::int64_t queries = 1;  // new tokens
  std::int64_t keys = 1;     // all keys, the new tokens included, which are the last

  std::int64_t history() const { return keys - queries; }
};

// Number of queries before every sequence, and of all sequences at the end.
std::vector<std::int64_t> first_tokens(std::span<const PagedSequence> sequences);

struct QueryBlock {
  std::size_t sequence = 0;
  std::int64_t first = 0;   // query of the sequence
  std::int64_t tokens = 0;  // 0: the program ends at once
  friend bool operator==(const QueryBlock&, const QueryBlock&) = default;
};

// P of the opening comment.
std::int64_t query_programs(std::int64_t tokens, std::size_t sequences, std::int64_t block_q);

// The block of program p. `cu`: first_tokens().
QueryBlock block_of_program(std::span<const std::int64_t> cu, std::int64_t block_q, std::int64_t p);

struct KeyRange {
  std::int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

// Keys of a segment of a sequence of `keys` keys, as far as its queries see them: the first `seen` keys.
KeyRange segment_keys(std::int64_t keys, std::int64_t seen, std::int64_t segments, std::int64_t tile,
                      std::int64_t segment);

// Default rows of a query block: 16, the rows of a matrix instruction, or the next power of two at or above
// the group.
std::int64_t usual_block_rows(std::int64_t group);

}  // namespace tritax
