// Tile sets from text: the format, and one clear message for everything else.
#include "model/parts/read_tile_set.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {
namespace {

using Numbers = std::vector<std::int32_t>;

std::string refusal_of(const std::string& text) {
  try {
    parse_tile_set(text, "a.mtx");
  } catch (const UserError& error) {
    return error.what();
  }
  return "read";
}

TEST(ReadTileSet, SortsEntriesIntoRows) {
  const SparseMatrix matrix = parse_tile_set(
      "%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 4\n3 1 0.5\n1 4 -1e3\n1 2 7\n3 1 2\n",
      "a.mtx");
  EXPECT_EQ(matrix.rows, 3);
  EXPECT_EQ(matrix.cols, 4);
  EXPECT_EQ(matrix.offsets, (Numbers{0, 2, 2, 3}));  // 3 1 is there twice
  EXPECT_EQ(matrix.columns, (Numbers{1, 3, 0}));
}

TEST(ReadTileSet, MirrorsSymmetricMatricesButForTheirDiagonal) {
  const SparseMatrix matrix =
      parse_tile_set("%%MatrixMarket MATRIX coordinate pattern Symmetric\n2 2 2\n1 1\n2 1\n", "a.mtx");
  EXPECT_EQ(matrix.offsets, (Numbers{0, 2, 3}));
  EXPECT_EQ(matrix.columns, (Numbers{0, 1, 0}));
}

TEST(ReadTileSet, TakesTheSizesOfTilesAlone) {
  const SparseMatrix matrix = parse_tile_set("# tokens of experts\n3\n0\n2\n", "routing.txt");
  EXPECT_EQ(matrix.rows, 3);
  EXPECT_EQ(matrix.cols, 5);
  EXPECT_EQ(matrix.offsets, (Numbers{0, 3, 3, 5}));
}

TEST(ReadTileSet, NamesTheLineOfWhatItRefuses) {
  const std::string banner = "%%MatrixMarket matrix coordinate real general\n";
  EXPECT_EQ(refusal_of(banner + "2 2 1\n3 1 1\n"), "a.mtx:3: row is '3'; give a whole number from 1 to 2");
  EXPECT_EQ(refusal_of(banner + "2 2 2\n1 1 1\n"), "a.mtx:3: the file ends after 1 entries of 2");
  EXPECT_EQ(refusal_of(banner + "2 2 1\n1 1 1\n2 2 1\n"),
            "a.mtx:4: more than the 1 entries that the file announces");
  EXPECT_EQ(refusal_of("%%MatrixMarket matrix array real general\n2 2\n"),
            "a.mtx:1: the banner says 'array'; known are coordinate");
  EXPECT_EQ(refusal_of("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 3 1\n"),
            "a.mtx:3: lies outside the mirror image of a matrix that is not square");
  EXPECT_EQ(refusal_of("12\nmany\n").substr(0, 43), "a.mtx:2: the size of a tile is 'many'; give");
  EXPECT_EQ(refusal_of("").substr(0, 16), "a.mtx:0: 0 tiles");
}

}  // namespace
}  // namespace tritax
