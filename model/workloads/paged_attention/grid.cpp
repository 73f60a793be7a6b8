#include "model/workloads/paged_attention/grid.hpp"

#include <algorithm>
#include <bit>

#include "model/core/error.hpp"

namespace tritax {

std::vector<std::int64_t> first_tokens(std::span<const PagedSequence> sequences) {
  std::vector<std::int64_t> cu{0};
  for (const PagedSequence& sequence : sequences) cu.push_back(cu.back() + sequence.queries);
  return cu;
}

std::int64_t query_programs(std::int64_t tokens, std::size_t sequences, std::int64_t block_q) {
  return tokens / block_q + static_cast<std::int64_t>(sequences);
}

QueryBlock block_of_program(std::span<const std::int64_t> cu, std::int64_t block_q, std::int64_t p) {
  TRITAX_ASSERT(cu.size() > 1 && block_q > 0 && p >= 0, "a program has a sequence to find");
  const auto first_program = [&](std::size_t s) { return cu[s] / block_q + static_cast<std::int64_t>(s); };
  std::size_t low = 0, high = cu.size() - 1;  // the sequence number is in [low, high)
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (first_program(middle) <= p ? low : high) = middle;
  }
  const std::int64_t queries = cu[low + 1] - cu[low];
  QueryBlock block{low, (p - first_program(low)) * block_q, 0};
  block.tokens = std::clamp<std::int64_t>(queries - block.first, 0, block_q);
  return block;
}

KeyRange segment_keys(std::int64_t keys, std::int64_t seen, std::int64_t segments, std::int64_t tile,
                      std::int64_t segment) {
  const std::int64_t tiles = (keys + segments * tile - 1) / (segments * tile);
  const std::int64_t begin = segment * tiles * tile;
  return {std::min(begin, seen), std::min(begin + tiles * tile, seen)};
}

std::int64_t usual_block_rows(std::int64_t group) {
  return std::max<std::int64_t>(16,
                                static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(group))));
}

}  // namespace tritax
