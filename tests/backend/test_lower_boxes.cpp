// What of a tile goes through the copy engine, and where its boxes end.
#include <gtest/gtest.h>

#include "one_kernel.hpp"

namespace tritax::gpu {
namespace {

TEST(Lowering, WholeTilesAndTilesAtTheEdgeGoThroughTheCopyEngineAndOthersDoNot) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.store(test.c, {200, 0, 56, 128}, 0);  // ends where the buffer ends
  test.builder.store(test.c, {0, 0, 100, 128}, 0);   // ends before a neighbour's rows: its map does, too
  test.builder.store(test.c, {0, 0, 128, 120}, 0);   // likewise for columns
  test.builder.store(test.c, {0, 4, 128, 128}, 0);   // starts off the 16-byte grid
  test.builder.store(test.c, {0, 0, 128, 100}, 0);   // ends off it, in 16 bytes that a neighbour shares
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_TRUE(has(program.ops[1], kTensor));
  EXPECT_TRUE(has(program.ops[2], kTensor));
  const auto map_of = [&](std::size_t op) {
    return program.tensor_maps[static_cast<std::size_t>(program.ops[op].tensor_map)];
  };
  EXPECT_TRUE(has(program.ops[3], kTensor));
  EXPECT_EQ(map_of(3).rows, 100);
  EXPECT_TRUE(has(program.ops[4], kTensor));
  EXPECT_EQ(map_of(4).cols, 120);
  EXPECT_FALSE(has(program.ops[5], kTensor));
  EXPECT_EQ(program.ops[5].width, 8);
  EXPECT_FALSE(has(program.ops[6], kTensor));
}

TEST(Lowering, AKRangeThatEndsInsideTheOperandsIsClippedByItsMaps) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 72);
  test.builder.matmul(test.a, test.b, kTile, 72, 200);  // whole steps need no clipping
  test.builder.store(test.c, kTile, 0);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_EQ(program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map)].cols, 72);
  EXPECT_EQ(program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map_b)].rows, 72);
  EXPECT_EQ(program.tensor_maps[static_cast<std::size_t>(program.ops[1].tensor_map)].cols, 256);
}

TEST(Lowering, BoxesOfOperandsAreNotClippedWhereResultsAreNeverStored) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, {200, 0, 56, 128}, 0, 256);  // 56 of 128 rows, up to the end of A
  test.builder.store(test.c, {200, 0, 56, 128}, 0);
  const RankProgram program = test.lowered(device_with_copy_engine());
  const TensorMapSpec& a = program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map)];
  EXPECT_GE(a.rows, 200 + 128);
  EXPECT_EQ(a.cols, 256);
  const TensorMapSpec& c = program.tensor_maps[static_cast<std::size_t>(program.ops[1].tensor_map)];
  EXPECT_EQ(c.rows, 256);  // what is stored is
}

TEST(Lowering, BoxesOfAHaveTheRowsOfTheSchedulesTiles) {
  OneKernel test;
  const Rect tile{0, 0, 32, 128};
  test.builder.matmul(test.a, test.b, tile, 0, 256);
  test.builder.store(test.c, tile, 0);
  Schedule schedule = test.builder.finish();
  const DeviceTraits device = device_with_copy_engine();
  const HeapLayout heap = lay_out_heap(schedule, device);
  for (const std::int32_t rows : {32, 75, 128}) {
    schedule.kernels[0].tile.m = rows;
    const RankProgram program = lower(schedule, heap, device, 0, {0, 0});
    EXPECT_EQ(program.kernels[0].box_rows_of_a, rows);
    EXPECT_EQ(program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map)].box_rows, rows);
    EXPECT_EQ(program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map_b)].box_rows, 64);
  }
}

}  // namespace
}  // namespace tritax::gpu
