#include <gtest/gtest.h>

#include <chrono>

#include "gpu_schedules.hpp"
#include "model/core/error.hpp"

namespace tritax::gpu {
namespace {

struct TileCase {
  DType dtype;
  Tile tile;
};

std::vector<TileCase> tile_cases() {
  std::vector<TileCase> cases;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp8}) {
    for (const Tile tile : {Tile{128, 256}, Tile{256, 128}, Tile{128, 128}, Tile{64, 256}})
      cases.push_back({dtype, tile});
    if (dtype == DType::fp8) continue;
    for (const Tile tile :
         {Tile{64, 128}, Tile{256, 64}, Tile{128, 64}, Tile{64, 64}, Tile{32, 64}, Tile{16, 32}})
      cases.push_back({dtype, tile});
  }
  for (const Tile tile : {Tile{128, 128}, Tile{128, 64}, Tile{64, 128}, Tile{64, 64}, Tile{32, 64}})
    cases.push_back({DType::fp64, tile});
  return cases;
}

Schedule gemm(const Problem& problem, Tile tile) {
  ScheduleBuilder builder("gemm", 1);
  const Operands buffers = operands(builder, problem, tile);
  const std::int32_t kernel = matmul_kernel(builder, "gemm", tile, problem.dtype);
  const std::vector<Rect> tiles = tiles_of(problem, tile);
  // Three workgroups, so that each computes many tiles after one another.
  for (std::size_t p = 0; p < 3; ++p) {
    builder.workgroup(kernel);
    for (std::size_t t = p; t < tiles.size(); t += 3) {
      builder.matmul(buffers.a, buffers.b, tiles[t], 0, problem.k);
      builder.store(buffers.c, tiles[t], 0);
    }
  }
  builder.launch(0, kernel);
  return builder.finish();
}

TEST(OneGpu, EveryTileShapeMultipliesWholeTiles) {
  TRITAX_NEEDS_GPUS(1);
  for (const TileCase& c : tile_cases()) {
    SCOPED_TRACE(std::string(name_of(c.dtype)) + " " + std::to_string(c.tile.m) + "x" +
                 std::to_string(c.tile.n));
    expect_right(gemm({512, 512, 1024, c.dtype}, c.tile), 11);
  }
}

TEST(OneGpu, EveryTileShapeMultipliesRaggedEdges) {
  TRITAX_NEEDS_GPUS(1);
  for (const TileCase& c : tile_cases()) {
    SCOPED_TRACE(std::string(name_of(c.dtype)) + " " + std::to_string(c.tile.m) + "x" +
                 std::to_string(c.tile.n));
    expect_right(gemm({333, 391, 203, c.dtype}, c.tile), 12);
    expect_right(gemm({17, 24, 40, c.dtype}, c.tile), 13);
    expect_right(gemm({1, 1, 1, c.dtype}, c.tile), 14);
  }
}

TEST(OneGpu, TilesInsideTheResultLeaveTheirNeighboursAlone) {
  TRITAX_NEEDS_GPUS(1);
  // Tiles smaller than the kernel's and at odd places: stores may not go through whole boxes.
  const Problem problem{300, 500, 256, DType::bf16};
  ScheduleBuilder builder("odd tiles", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
  for (const Rect& rect : tiles_of(problem, {75, 88})) {
    builder.workgroup(kernel);
    builder.matmul(buffers.a, buffers.b, rect, 0, problem.k);
    builder.store(buffers.c, rect, 0);
  }
  builder.launch(0, kernel);
  expect_right(builder.finish(), 21);
}

TEST(OneGpu, ProductsOverPartsOfKAddUp) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{256, 256, 500, DType::bf16};
  ScheduleBuilder builder("k parts", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
  for (const Rect& rect : tiles_of(problem, {128, 128})) {
    builder.workgroup(kernel);
    builder.matmul(buffers.a, buffers.b, rect, 0, 104);
    builder.matmul(buffers.a, buffers.b, rect, 104, 360);
    builder.matmul(buffers.a, buffers.b, rect, 360, 500);
    builder.store(buffers.c, rect, 0);
  }
  builder.launch(0, kernel);
  expect_right(builder.finish(), 22);
}

TEST(OneGpu, PartialProductsMeetThroughLoadAndReduce) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{256, 384, 512, DType::bf16};
  ScheduleBuilder builder("split k", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::int16_t first = builder.buffer({"first half", DType::fp32, problem.m, problem.n, 128, 128});
  const std::int16_t second = builder.buffer({"second half", DType::fp32, problem.m, problem.n, 128, 128});
  const std::int32_t halves = matmul_kernel(builder, "halves", {128, 128}, problem.dtype);
  const std::int32_t sum = plain_kernel(builder, "sum", 256);
  for (const Rect& rect : tiles_of(problem, {128, 128})) {
    builder.workgroup(halves);
    builder.matmul(buffers.a, buffers.b, rect, 0, 256);
    builder.store(first, rect, 0);
    builder.matmul(buffers.a, buffers.b, rect, 256, 512);
    builder.store(second, rect, 0);
  }
  for (const Rect& rect : tiles_of(problem, {128, 100})) {
    builder.workgroup(sum);
    builder.load(first, rect, 0);
    builder.reduce(second, rect, 0);
    builder.store(buffers.c, rect, 0);
  }
  builder.launch(0, halves);
  builder.launch(0, sum);
  expect_right(builder.finish(), 23);
}

TEST(OneGpu, AMatmulKernelReducesIntoItsAccumulator) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{256, 256, 512, DType::fp16};
  ScheduleBuilder builder("reduce into matmul", 1);
  const Operands buffers = operands(builder, problem, {128, 256});
  const std::int16_t half = builder.buffer({"half", DType::fp32, problem.m, problem.n, 128, 256});
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 256}, problem.dtype);
  for (const Rect& rect : tiles_of(problem, {128, 256})) {
    builder.workgroup(kernel);
    builder.matmul(buffers.a, buffers.b, rect, 0, 256);
    builder.store(half, rect, 0);
    builder.barrier();
    builder.matmul(buffers.a, buffers.b, rect, 256, 512);
    builder.reduce(half, rect, 0);
    builder.store(buffers.c, rect, 0);
  }
  builder.launch(0, kernel);
  expect_right(builder.finish(), 24);
}

TEST(OneGpu, AtomicAdditionsOfAllWorkgroupsAddUp) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{128, 128, 512, DType::fp32};
  ScheduleBuilder builder("atomic", 1);
  const std::int16_t a = builder.buffer({"A", DType::bf16, problem.m, problem.k, 128, 64});
  const std::int16_t b = builder.buffer({"B", DType::bf16, problem.k, problem.n, 64, 128});
  const std::int16_t c = builder.buffer({"C", DType::fp32, problem.m, problem.n, 128, 128});
  builder.result(c);
  builder.expect_column_blocks(a, b, c);
  const std::int32_t kernel = matmul_kernel(builder, "parts", {128, 128}, DType::bf16);
  for (std::int32_t k = 0; k < problem.k; k += 64) {
    builder.workgroup(kernel);
    builder.matmul(a, b, {0, 0, 128, 128}, k, k + 64);
    builder.atomic_add(c, {0, 0, 128, 128}, 0);
  }
  builder.launch(0, kernel);
  expect_right(builder.finish(), 25);
}

TEST(OneGpu, CopiesMoveRectanglesOfAnyShape) {
  TRITAX_NEEDS_GPUS(1);
  for (const Rect& piece :
       {Rect{0, 0, 64, 256}, Rect{0, 0, 37, 53}, Rect{0, 0, 300, 1}, Rect{0, 0, 1, 500}}) {
    const Problem problem{300, 500, 128, DType::bf16};
    ScheduleBuilder builder("copy", 1);
    const Operands buffers = operands(builder, problem, {128, 128});
    const std::int16_t staging =
        builder.buffer({"staging", problem.dtype, problem.m + 3, problem.n + 5, 128, 128});
    const std::int32_t compute = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
    const std::int32_t move = plain_kernel(builder, "move", 192);
    for (Rect rect : tiles_of(problem, {128, 128})) {
      builder.workgroup(compute);
      builder.matmul(buffers.a, buffers.b, rect, 0, problem.k);
      rect.row += 3;
      rect.col += 5;
      builder.store(staging, rect, 0);
    }
    for (const Rect& rect : tiles_of(problem, {piece.rows, piece.cols})) {
      builder.workgroup(move);
      builder.copy(buffers.c, rect, 0, staging, rect.row + 3, rect.col + 5, 0);
    }
    builder.launch(0, compute);
    builder.launch(0, move);
    expect_right(builder.finish(), 26);
  }
}

TEST(OneGpu, FlagsOrderTwoKernelsUnderEveryLockProtocol) {
  TRITAX_NEEDS_GPUS(1);
  for (const LockProtocol protocol :
       {LockProtocol::load_store, LockProtocol::exchange, LockProtocol::compare_and_swap}) {
    const Problem problem{1024, 1024, 512, DType::bf16};
    ScheduleBuilder builder("flags", 1);
    const Operands buffers = operands(builder, problem, {128, 128});
    const std::int16_t staging = builder.buffer({"staging", problem.dtype, problem.m, problem.n, 128, 128});
    const std::vector<Rect> tiles = tiles_of(problem, {128, 128});
    const std::int16_t ready = builder.flags("ready", static_cast<std::int32_t>(tiles.size()));
    const std::int32_t compute = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
    const std::int32_t move = plain_kernel(builder, "move", 256);
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      builder.workgroup(compute);
      builder.matmul(buffers.a, buffers.b, tiles[t], 0, problem.k);
      builder.store(staging, tiles[t], 0);
      builder.signal(ready, static_cast<std::int32_t>(t), 1, 0, Scope::gpu, protocol);
    }
    for (std::size_t p = 0; p < 16; ++p) {
      builder.workgroup(move);
      for (std::size_t t = p; t < tiles.size(); t += 16) {
        builder.wait(ready, static_cast<std::int32_t>(t), 1, Scope::gpu, protocol);
        builder.copy(buffers.c, tiles[t], 0, staging, tiles[t].row, tiles[t].col, 0);
      }
    }
    builder.launch(0, move, 1);  // the waiting kernel first: it must not keep the other one out
    builder.launch(0, compute, 0);
    expect_right(builder.finish(), 27);
  }
}

TEST(OneGpu, ASharedCounterCountsAllSignals) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{512, 512, 256, DType::bf16};
  ScheduleBuilder builder("counter", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::int16_t staging = builder.buffer({"staging", problem.dtype, problem.m, problem.n, 128, 128});
  const std::vector<Rect> tiles = tiles_of(problem, {128, 128});
  const std::int16_t done = builder.flags("done", 1);
  const std::int32_t compute = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
  for (const Rect& rect : tiles) {
    builder.workgroup(compute);
    builder.matmul(buffers.a, buffers.b, rect, 0, problem.k);
    builder.store(staging, rect, 0);
    builder.signal(done, 0, 1, 0, Scope::gpu, LockProtocol::exchange);
    builder.wait(done, 0, static_cast<std::int32_t>(tiles.size()), Scope::gpu, LockProtocol::load_store);
    builder.copy(buffers.c, rect, 0, staging, rect.row, rect.col, 0);
  }
  builder.launch(0, compute);
  expect_right(builder.finish(), 28);
}

TEST(OneGpu, ClaimedTilesAreComputedOnceEach) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{512, 512, 256, DType::bf16};
  ScheduleBuilder builder("claim", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::vector<Rect> tiles = tiles_of(problem, {128, 128});
  const std::int16_t queue = builder.flags("queue", static_cast<std::int32_t>(tiles.size()));
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
  for (int p = 0; p < 8; ++p) {
    builder.workgroup(kernel);
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      builder.claim(queue, static_cast<std::int32_t>(t), 1, 2);
      builder.matmul(buffers.a, buffers.b, tiles[t], 0, problem.k);
      builder.store(buffers.c, tiles[t], 0);
    }
  }
  builder.launch(0, kernel);
  expect_right(builder.finish(), 29);
}

TEST(OneGpu, AWorkgroupMultipliesWhatItHasJustWritten) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{128, 128, 256, DType::bf16};
  ScheduleBuilder builder("own operand", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::int16_t copy_of_a = builder.buffer({"copy of A", problem.dtype, problem.m, problem.k, 128, 64});
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
  builder.workgroup(kernel);
  builder.copy(copy_of_a, {0, 0, problem.m, problem.k}, 0, buffers.a, 0, 0, 0);
  builder.matmul(copy_of_a, buffers.b, {0, 0, 128, 128}, 0, problem.k);
  builder.store(buffers.c, {0, 0, 128, 128}, 0);
  builder.launch(0, kernel);
  expect_right(builder.finish(), 30);
}

TEST(OneGpu, GraphsKeepTheOrderOfAStream) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{512, 512, 256, DType::bf16};
  ScheduleBuilder builder("graph", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::int16_t staging = builder.buffer({"staging", problem.dtype, problem.m, problem.n, 128, 128});
  const std::int32_t compute = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
  const std::int32_t move = plain_kernel(builder, "move", 1024);
  for (const Rect& rect : tiles_of(problem, {128, 128})) {
    builder.workgroup(compute);
    builder.matmul(buffers.a, buffers.b, rect, 0, problem.k);
    builder.store(staging, rect, 0);
  }
  for (const Rect& rect : tiles_of(problem, {64, 512})) {
    builder.workgroup(move);
    builder.copy(buffers.c, rect, 0, staging, rect.row, rect.col, 0);
  }
  builder.graph_launch(0, {{compute, 0}, {move, 0}});
  expect_right(builder.finish(), 31);
}

TEST(OneGpu, TheCheckSeesATileThatNobodyStored) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{512, 512, 256, DType::bf16};
  ScheduleBuilder builder("missing tile", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
  const std::vector<Rect> tiles = tiles_of(problem, {128, 128});
  for (std::size_t t = 1; t < tiles.size(); ++t) {
    builder.workgroup(kernel);
    builder.matmul(buffers.a, buffers.b, tiles[t], 0, problem.k);
    builder.store(buffers.c, tiles[t], 0);
  }
  builder.launch(0, kernel);
  const Schedule schedule = builder.finish();
  Executor executor(schedule, {});
  executor.fill(32);
  executor.run();
  EXPECT_FALSE(executor.check().passed);
}

// Rows 0 to 40 of x are input; the schedule copies them below and doubles them into y.
Schedule halves_of_a_buffer() {
  ScheduleBuilder builder("input by region", 1);
  const std::int16_t x = builder.buffer({"x", DType::bf16, 80, 104, 40, 104});
  const std::int16_t y = builder.buffer({"y", DType::fp32, 40, 104, 40, 104});
  const Region upper{x, 0, {0, 0, 40, 104}};
  const Region lower{x, 0, {40, 0, 40, 104}};
  builder.input(upper);
  builder.expect_copy(lower, upper);
  builder.expect_sum(builder.whole(y, 0), {x, kEveryRank, lower.rect});
  builder.expect_copy(builder.whole(y, 0), upper, true);
  const std::int32_t kernel = plain_kernel(builder, "copy and double", 256);
  builder.workgroup(kernel);
  builder.copy(x, lower.rect, 0, x, 0, 0, 0);
  builder.load(x, upper.rect, 0);
  builder.reduce(x, upper.rect, 0);
  builder.store(y, {0, 0, 40, 104}, 0);
  builder.launch(0, kernel);
  return builder.finish();
}

TEST(OneGpu, ABufferIsInputAndTargetByRegion) {
  TRITAX_NEEDS_GPUS(1);
  Schedule schedule = halves_of_a_buffer();
  expect_right(schedule, 33);
  schedule.ops[0].src_row = 1;  // one row too low
  Executor executor(schedule, {});
  executor.fill(33);
  executor.run();
  EXPECT_FALSE(executor.check().passed);
}

TEST(OneGpu, AScheduleWithoutReferenceIsNotChecked) {
  TRITAX_NEEDS_GPUS(1);
  Schedule schedule = halves_of_a_buffer();
  schedule.reference.clear();
  Executor executor(schedule, {});
  executor.fill(34);
  executor.run();
  EXPECT_THROW(executor.check(), UserError);
}

TEST(OneGpu, AWaitThatNobodyAnswersEndsSoonAndIsNamed) {
  TRITAX_NEEDS_GPUS(1);
  ScheduleBuilder builder("hang", 1);
  const std::int16_t never = builder.flags("never", 4);
  const std::int32_t kernel = plain_kernel(builder, "waits", 64);
  builder.workgroup(kernel);
  builder.barrier();
  builder.workgroup(kernel);
  builder.barrier();
  builder.wait(never, 3, 1, Scope::gpu, LockProtocol::load_store);
  builder.launch(0, kernel);
  const Schedule schedule = builder.finish();
  ExecutorOptions options;
  options.spin_limit_s = 0.2;
  Executor executor(schedule, options);
  executor.fill(1);
  const auto begin = std::chrono::steady_clock::now();
  try {
    executor.run();
    FAIL() << "the run came back as if nothing had happened";
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("kernel 'waits' rank 0 workgroup 1 operation 1 (wait), flag 'never'[3] >= 1, is 0"),
              std::string::npos)
        << text;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 5.0);
  expect_right(gemm({256, 256, 128, DType::bf16}, {128, 128}), 33);  // the GPU is usable afterwards
}

TEST(OneGpu, AMatmulKernelThatWaitsInVainLeavesToo) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{256, 128, 4096, DType::bf16};
  ScheduleBuilder builder("hang in matmul", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::int16_t never = builder.flags("never", 1);
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
  for (const Rect& rect : tiles_of(problem, {128, 128})) {
    builder.workgroup(kernel);
    builder.matmul(buffers.a, buffers.b, rect, 0, problem.k);
    builder.store(buffers.c, rect, 0);
    builder.wait(never, 0, 1, Scope::system, LockProtocol::compare_and_swap);
    builder.matmul(buffers.a, buffers.b, rect, 0, problem.k);
    builder.store(buffers.c, rect, 0);
  }
  builder.launch(0, kernel);
  const Schedule schedule = builder.finish();
  ExecutorOptions options;
  options.spin_limit_s = 0.2;
  Executor executor(schedule, options);
  executor.fill(1);
  EXPECT_THROW(executor.run(), UserError);
  expect_right(gemm({256, 256, 128, DType::bf16}, {128, 128}), 34);
}

TEST(OneGpu, StampsCoverEveryOperationInOrder) {
  TRITAX_NEEDS_GPUS(1);
  const Schedule schedule = gemm({512, 512, 1024, DType::bf16}, {128, 128});
  ExecutorOptions options;
  options.stamps = true;
  Executor executor(schedule, options);
  executor.fill(1);
  executor.run();
  const std::vector<StampedOp> stamps = executor.stamps();
  ASSERT_EQ(stamps.size(), schedule.ops.size());
  for (const Kernel& kernel : schedule.kernels) {
    for (const Workgroup& workgroup : kernel.workgroups) {
      for (std::uint32_t i = workgroup.first_op; i < workgroup.first_op + workgroup.op_count; ++i) {
        EXPECT_LE(stamps[i].begin_us, stamps[i].end_us);
        if (stamps[i].end_us - stamps[i].begin_us > 2) {
          EXPECT_GT(stamps[i].clock_ghz, 0.3);
          EXPECT_LT(stamps[i].clock_ghz, 4);
        }
        if (i < workgroup.first_op + 2) continue;
        // Matmul follows matmul and store follows store; a store may drain behind the next matmul.
        EXPECT_LE(stamps[i - 2].end_us, stamps[i].begin_us);
        if (schedule.ops[i].kind == OpKind::store) {
          EXPECT_LE(stamps[i - 1].begin_us, stamps[i].begin_us);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tritax::gpu
