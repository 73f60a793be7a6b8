#include "model/parts/library_attention.hpp"

#include <gtest/gtest.h>

#include "model/core/error.hpp"

namespace tritax {
namespace {

// Counts of FlashAttention-3's own heuristic (hopper/heuristics.h) by hand.
TEST(LibraryAttention, SplitsKeysUntilTheUnitsAreFull) {
  EXPECT_EQ(splits_of_keys(132, 132, 64), 1);
  EXPECT_EQ(splits_of_keys(106, 132, 64), 1);  // 0.8 of the units
  EXPECT_EQ(splits_of_keys(32, 132, 4), 1);    // few blocks of keys
  EXPECT_EQ(splits_of_keys(32, 132, 32), 4);   // 128 of 132
  EXPECT_EQ(splits_of_keys(66, 132, 32), 2);
  EXPECT_EQ(splits_of_keys(8, 132, 64), 15);  // 120 of 132; 14 fill less than 0.85 of the best, 33
  EXPECT_EQ(splits_of_keys(1, 132, 6), 6);    // no more than blocks; the best is 6 of 132
}

TEST(LibraryAttention, TakesTheTilesOfFlashAttention3) {
  const Machine machine = find_machine("h200-8");
  const auto tile = [&](std::int64_t queries, std::int64_t heads, std::int64_t depth) {
    const MatmulTile found =
        library_attention(machine, DType::bf16, {4, queries, 4096, heads, 8, depth}).tile;
    return std::pair{found.m, found.n};
  };
  EXPECT_EQ(tile(1, 32, 128), std::pair(64, 128));
  EXPECT_EQ(tile(4096, 32, 128), std::pair(128, 128));
  EXPECT_EQ(tile(1, 32, 64), std::pair(64, 192));
  EXPECT_EQ(tile(4096, 32, 64), std::pair(192, 128));
  EXPECT_EQ(tile(1, 32, 256), std::pair(128, 80));
}

TEST(LibraryAttention, SplitsKeysOfDecodeIntoPartitionsOnAmd) {
  const Machine machine = find_machine("mi300x-8");
  const auto splits = [&](std::int64_t queries, std::int64_t keys) {
    return library_attention(machine, DType::bf16, {64, queries, keys, 32, 8, 128}).splits;
  };
  EXPECT_EQ(splits(1, 256), 1);
  EXPECT_EQ(splits(1, 4097), 17);
  EXPECT_EQ(splits(1, 131072), 512);
  EXPECT_EQ(splits(4096, 4096), 1);
  EXPECT_FALSE(library_attention(machine, DType::bf16, {64, 1, 4096, 32, 8, 128}).prepares);
  EXPECT_TRUE(library_attention(find_machine("h200-8"), DType::bf16, {64, 1, 4096, 32, 8, 128}).prepares);
}

// Other GPUs hold less; what fits is smaller.
TEST(LibraryAttention, FitsEveryShippedGpu) {
  for (const std::string& name : shipped_machines()) {
    const Machine machine = find_machine(name);
    if (machine.gpu.rate(DType::bf16).flop_per_clk_per_cu <= 0) continue;
    for (const std::int64_t depth : {16, 64, 96, 128}) {
      for (const std::int64_t queries : {1, 4096}) {
        EXPECT_NO_THROW(library_attention(machine, DType::bf16, {4, queries, 4096, 32, 8, depth}))
            << name << " " << depth;
      }
    }
  }
}

}  // namespace
}  // namespace tritax
