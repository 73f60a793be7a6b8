#include "model/workloads/paged_attention/heuristics.hpp"

#include <algorithm>

namespace tritax {

namespace {

constexpr std::int64_t kLeastGrid = 128;  // programs; smaller grids split keys

enum class Asks : std::uint8_t { queries, keys, leaf };

// Nodes of a tree in one array; children are indices of nodes.
struct TreeNode {
  Asks asks = Asks::leaf;
  double at_most = 0;
  std::size_t yes = 0, no = 0;
  KernelChoice leaf{};
};

constexpr TreeNode leaf_node(std::int32_t tile, std::int32_t rows, std::int32_t stages, std::int32_t warps) {
  return {.leaf = {tile, rows, stages, warps}};
}

constexpr std::array<TreeNode, 7> kTreeOfH100{{
    {Asks::keys, 96, 1, 2},
    leaf_node(32, 16, 4, 4),
    {Asks::queries, 192, 3, 6},
    {Asks::keys, 1536, 4, 5},
    leaf_node(128, 16, 2, 8),
    leaf_node(128, 16, 8, 8),
    leaf_node(128, 128, 1, 8),
}};

constexpr std::array<TreeNode, 15> kTreeOfMi300{{
    {Asks::queries, 384, 1, 12},
    {Asks::keys, 96, 2, 3},
    leaf_node(32, 16, 4, 4),
    {Asks::keys, 192, 4, 7},
    {Asks::queries, 96, 5, 6},
    leaf_node(128, 16, 2, 8),
    leaf_node(32, 16, 4, 4),
    {Asks::queries, 128, 8, 9},
    leaf_node(32, 16, 4, 4),
    {Asks::keys, 384, 10, 11},
    leaf_node(32, 16, 4, 4),
    leaf_node(256, 32, 1, 4),
    {Asks::keys, 768, 13, 14},
    leaf_node(16, 64, 4, 4),
    leaf_node(64, 64, 1, 2),
}};

KernelChoice descend(std::span<const TreeNode> tree, const BatchShape& shape) {
  std::size_t at = 0;
  while (tree[at].asks != Asks::leaf) {
    const double value =
        tree[at].asks == Asks::queries ? shape.mean_queries : static_cast<double>(shape.most_keys);
    at = value <= tree[at].at_most ? tree[at].yes : tree[at].no;
  }
  return tree[at].leaf;
}

}  // namespace

BatchShape shape_of(std::span<const PagedSequence> sequences) {
  BatchShape shape{0, 1, 1};
  for (const PagedSequence& sequence : sequences) {
    shape.mean_queries += static_cast<double>(sequence.queries) / static_cast<double>(sequences.size());
    shape.most_queries = std::max(shape.most_queries, sequence.queries);
    shape.most_keys = std::max(shape.most_keys, sequence.keys);
  }
  return shape;
}

KernelChoice choice_of_listing(const BatchShape& shape, bool nvidia) {
  KernelChoice choice;
  choice.block_rows = shape.most_queries > 1 && shape.mean_queries >= 4096 && nvidia ? 64 : 16;
  choice.tile = shape.most_keys <= 64 || shape.mean_queries <= 4096 || !nvidia ? 32 : 64;
  return choice;
}

KernelChoice choice_of_tree(const BatchShape& shape, bool nvidia) {
  return nvidia ? descend(kTreeOfH100, shape) : descend(kTreeOfMi300, shape);
}

bool splits_keys(const BatchShape& shape, std::size_t sequences, std::int64_t kv_heads) {
  return shape.most_queries == 1 && static_cast<std::int64_t>(sequences) <= kLeastGrid / kv_heads;
}

}  // namespace tritax
