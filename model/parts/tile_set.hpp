// Tile sets: the distribution of the work of an irregular problem. A tile set is a sparse matrix
// (schedule/sparse.hpp): its rows are the tiles, its nonzeros the atoms. A generator makes it from a seed,
// the same on every machine, or it is read from a file.
//
//   uniform    every row has a mean of μ nonzeros, binomially spread, in columns drawn uniformly
//   power-law  lengths are Pareto with exponent α and mean μ, in no order, cut off at the columns; columns
//              uniform. P(length > l) falls as l^-(α-1), as degrees of web and social graphs do
//   banded     μ nonzeros within a band of `width` columns around the diagonal, drawn without repetition
//   block      dense blocks of `width`×`width`, as many to a row of blocks as make μ nonzeros a row
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "model/schedule/sparse.hpp"

namespace tritax {

enum class TileSetKind : std::uint8_t { uniform, power_law, banded, block };
inline constexpr std::array<std::string_view, 4> kTileSetKindNames{"uniform", "power-law", "banded", "block"};

struct TileSetQuestion {
  TileSetKind kind = TileSetKind::uniform;
  std::int32_t rows = 1;
  std::int32_t cols = 1;
  double mean_length = 1;  // nonzeros per row
  double exponent = 2;     // power-law, more than 1
  std::int32_t width = 1;  // banded and block, in columns
  std::uint64_t seed = 1;
};

// Columns of a row are in order, without duplicates. Rows may be empty.
SparseMatrix generate_tile_set(const TileSetQuestion& question);

// A tile set of given sizes: tile i has lengths[i] atoms, in columns of its own, one after the other, as the
// tokens of each expert.
SparseMatrix tile_set_of_lengths(std::string name, std::span<const std::int64_t> lengths);

// Facts that choose kernels; facts about lengths cost a pass over the offsets.
struct TileSetFacts {
  std::int32_t rows = 0, cols = 0;
  std::int64_t nonzeros = 0;
  double mean_length = 0;
  double deviation = 0;  // standard deviation of lengths
  std::int32_t longest = 0;
  std::int32_t empty_rows = 0;
};
TileSetFacts facts_of(const SparseMatrix& matrix);

// The matrix with row order[i] in place i.
SparseMatrix with_rows_in_order(const SparseMatrix& matrix, std::span<const std::int32_t> order);

}  // namespace tritax
