// The attention tile of each workgroup: the order in which a grid goes through query blocks, heads and
// batches, and so the die that works on each head (arXiv:2511.02132 §3, §4).
//
// Workgroup w runs on die x = w mod X, as its (w div X)-th workgroup. There are H query heads, G of them per
// head of keys, N query blocks per head, and B batches (all divisions are integer divisions):
//
//   naive block-first     head = w mod H; block = (w div H) mod N; batch = w div (H N)
//   swizzled block-first  the same with head = remap(w mod H; H, X), so that a die gets consecutive heads
//   naive head-first      block = w mod N; head = (w div N) mod H; batch = w div (H N)
//   swizzled head-first   every die takes one head after the other; by form:
//     clean  c = H/X; p = w div X: batch = p div (c N), r = p mod (c N); head = x c + r div N;
//            block = r mod N
//     paper  Fig. 11: u = w div B; s = X N; head = (u mod X) c + u div s; block = (u mod s) div X;
//            batch = (w div (N H)) mod B: computes tiles twice if there is more than one batch
//     aiter  `remap_workgroup_spatial` of ROCm/aiter (pull request 3936): heads of keys x, x + X, … on die x,
//            query blocks before the query heads that share a head; loses tiles outside its domain
//
// A form outside its domain is refused, because its results would be wrong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tritax {

enum class Mapping : std::uint8_t {
  naive_block_first,
  swizzled_block_first,
  naive_head_first,
  swizzled_head_first,
};
inline constexpr std::array<std::string_view, 4> kMappingNames{"naive-block-first", "swizzled-block-first",
                                                               "naive-head-first", "swizzled-head-first"};
constexpr std::string_view name_of(Mapping mapping) {
  return kMappingNames[static_cast<std::size_t>(mapping)];
}
enum class HeadFirstForm : std::uint8_t { clean, paper, aiter };
inline constexpr std::array<std::string_view, 3> kHeadFirstFormNames{"clean", "paper", "aiter"};

struct AttentionGrid {
  std::int64_t batch = 1;
  std::int64_t heads = 1;     // of queries
  std::int64_t kv_heads = 1;  // of keys and values; divides heads
  std::int64_t blocks = 1;    // of queries, per head
  std::int64_t dies = 1;

  std::int64_t tiles() const { return batch * heads * blocks; }
};

struct AttentionTile {
  std::int64_t batch = 0, head = 0, block = 0;
  friend bool operator==(const AttentionTile&, const AttentionTile&) = default;
};

// Numbers 0 … n-1 are dealt out in turn to `dies`. Returns the number that die p mod dies gets as its (p div
// dies)-th if every die has consecutive numbers instead: a bijection for every n.
std::int64_t remapped(std::int64_t p, std::int64_t n, std::int64_t dies);

// The reason why the form gives some tiles twice and others never; empty if it gives each tile once.
std::string fault_of_mapping(Mapping mapping, HeadFirstForm form, const AttentionGrid& grid);

// The tile of a workgroup, for a sound mapping. For other mappings, the tile that the published listing
// computes.
AttentionTile tile_of_workgroup(Mapping mapping, HeadFirstForm form, const AttentionGrid& grid,
                                std::int64_t workgroup);

}  // namespace tritax
