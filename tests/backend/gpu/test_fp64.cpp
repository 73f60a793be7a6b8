// Products in fp64 at odd places, where two numbers at a time would not do.
#include <gtest/gtest.h>

#include "gpu_schedules.hpp"

namespace tritax::gpu {
namespace {

constexpr Tile kKernels[] = {{128, 128}, {128, 64}, {64, 128}, {64, 64}, {32, 64}};
constexpr Problem kOdd{150, 231, 203, DType::fp64};

// Smaller than the kernel's, at columns 0, w, 2w, …, of which every other one is odd.
Tile odd_tile_of(Tile kernel) { return {kernel.m - 7, kernel.n - 1}; }

TEST(Fp64OnGpu, TilesAtOddColumnsAndKRangesAtOddPlacesMultiply) {
  TRITAX_NEEDS_GPUS(1);
  for (const Tile kernel_tile : kKernels) {
    SCOPED_TRACE(kernel_tile.m * 1000 + kernel_tile.n);
    ScheduleBuilder builder("odd columns", 1);
    const Operands buffers = operands(builder, kOdd, kernel_tile);
    const std::int32_t kernel = matmul_kernel(builder, "gemm", kernel_tile, DType::fp64);
    for (const Rect& rect : tiles_of(kOdd, odd_tile_of(kernel_tile))) {
      builder.workgroup(kernel);
      builder.matmul(buffers.a, buffers.b, rect, 0, 33);
      builder.matmul(buffers.a, buffers.b, rect, 33, 34);
      builder.matmul(buffers.a, buffers.b, rect, 34, kOdd.k);
      builder.store(buffers.c, rect, 0);
    }
    builder.launch(0, kernel);
    expect_right(builder.finish(), 71);
  }
}

TEST(Fp64OnGpu, PartialSumsAtOddColumnsAreReducedIntoTheAccumulator) {
  TRITAX_NEEDS_GPUS(1);
  for (const Tile kernel_tile : kKernels) {
    SCOPED_TRACE(kernel_tile.m * 1000 + kernel_tile.n);
    ScheduleBuilder builder("odd partial sums", 1);
    const Operands buffers = operands(builder, kOdd, kernel_tile);
    const std::int16_t half =
        builder.buffer({"half", DType::fp64, kOdd.m, kOdd.n, kernel_tile.m, kernel_tile.n});
    const std::int32_t kernel = matmul_kernel(builder, "gemm", kernel_tile, DType::fp64);
    for (const Rect& rect : tiles_of(kOdd, odd_tile_of(kernel_tile))) {
      builder.workgroup(kernel);
      builder.matmul(buffers.a, buffers.b, rect, 0, 101);
      builder.store(half, rect, 0);
      builder.barrier();
      builder.matmul(buffers.a, buffers.b, rect, 101, kOdd.k);
      builder.reduce(half, rect, 0);
      builder.store(buffers.c, rect, 0);
    }
    builder.launch(0, kernel);
    expect_right(builder.finish(), 72);
  }
}

TEST(Fp64OnGpu, AtomicAdditionsOfAllWorkgroupsAddUp) {
  TRITAX_NEEDS_GPUS(1);
  for (const Tile kernel_tile : kKernels) {
    SCOPED_TRACE(kernel_tile.m * 1000 + kernel_tile.n);
    ScheduleBuilder builder("atomic", 1);
    const Operands buffers = operands(builder, kOdd, kernel_tile);
    const std::int32_t kernel = matmul_kernel(builder, "parts", kernel_tile, DType::fp64);
    for (std::int32_t k = 0; k < kOdd.k; k += 29) {
      for (const Rect& rect : tiles_of(kOdd, odd_tile_of(kernel_tile))) {
        builder.workgroup(kernel);
        builder.matmul(buffers.a, buffers.b, rect, k, std::min(kOdd.k, k + 29));
        builder.atomic_add(buffers.c, rect, 0);
      }
    }
    builder.launch(0, kernel);
    expect_right(builder.finish(), 73);
  }
}

// Every rank adds the halves of its column block into the results of all.
TEST(Fp64OnGpus, AtomicAdditionsToPeersArrive) {
  TRITAX_NEEDS_GPUS(2);
  constexpr Tile kTile{64, 64};
  constexpr Problem kBlock{100, 63, 128, DType::fp64};  // of a rank: the second begins at an odd column
  ScheduleBuilder builder("remote atomics", 2);
  const std::int16_t a = builder.buffer({"A", DType::fp64, kBlock.m, kBlock.k, kTile.m, 16});
  const std::int16_t b = builder.buffer({"B", DType::fp64, kBlock.k, kBlock.n, 16, kTile.n});
  const std::int16_t c = builder.buffer({"C", DType::fp64, kBlock.m, 2 * kBlock.n, kTile.m, kTile.n});
  builder.result(c);
  builder.expect_column_blocks(a, b, c);
  for (int rank = 0; rank < 2; ++rank) {
    Kernel kernel;
    kernel.name = "halves";
    kernel.rank = rank;
    kernel.tile = {kTile.m, kTile.n, 16, 8, Pipeline::overlapped};
    const std::int32_t id = builder.kernel(std::move(kernel));
    for (const std::int32_t k : {0, 64}) {
      for (const Rect& rect : tiles_of(kBlock, kTile)) {
        builder.workgroup(id);
        builder.matmul(a, b, rect, k, k + 64);
        const Rect block{rect.row, rank * kBlock.n + rect.col, rect.rows, rect.cols};
        for (int to = 0; to < 2; ++to) builder.atomic_add(c, block, to);
      }
    }
    builder.launch(rank, id);
    builder.host(rank, HostOpKind::device_synchronize);
    builder.host(rank, HostOpKind::barrier);
  }
  expect_right(builder.finish(), 74);
}

}  // namespace
}  // namespace tritax::gpu
