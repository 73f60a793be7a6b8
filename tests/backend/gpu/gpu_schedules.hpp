// Schedules that the GPU tests share: each computes C = A·B in its own way, so that Executor::check() judges
// all.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "backend_hip/executor.hpp"
#include "model/schedule/builder.hpp"

namespace tritax::gpu {

struct Problem {
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  DType dtype = DType::bf16;
};

struct Tile {
  std::int32_t m = 128;
  std::int32_t n = 128;
};

// Buffers A, B and C of a problem on one GPU.
struct Operands {
  std::int16_t a = -1;
  std::int16_t b = -1;
  std::int16_t c = -1;
};

inline Operands operands(ScheduleBuilder& builder, const Problem& problem, Tile tile) {
  const std::int32_t k_step = 128 / bytes_of(problem.dtype);
  Operands buffers;
  buffers.a = builder.buffer({"A", problem.dtype, problem.m, problem.k, tile.m, k_step});
  buffers.b = builder.buffer({"B", problem.dtype, problem.k, problem.n, k_step, tile.n});
  buffers.c = builder.buffer({"C", problem.dtype, problem.m, problem.n, tile.m, tile.n});
  builder.result(buffers.c);
  builder.expect_column_blocks(buffers.a, buffers.b, buffers.c);
  return buffers;
}

inline std::vector<Rect> tiles_of(const Problem& problem, Tile tile) {
  std::vector<Rect> tiles;
  for (std::int32_t row = 0; row < problem.m; row += tile.m) {
    for (std::int32_t col = 0; col < problem.n; col += tile.n) {
      tiles.push_back({row, col, std::min(tile.m, problem.m - row), std::min(tile.n, problem.n - col)});
    }
  }
  return tiles;
}

inline std::int32_t matmul_kernel(ScheduleBuilder& builder, const char* name, Tile tile, DType dtype) {
  Kernel kernel;
  kernel.name = name;
  kernel.tile = {tile.m, tile.n, 128 / bytes_of(dtype), 8, Pipeline::overlapped};
  return builder.kernel(std::move(kernel));
}

inline std::int32_t plain_kernel(ScheduleBuilder& builder, const char* name, std::int32_t threads) {
  Kernel kernel;
  kernel.name = name;
  kernel.resources.threads = threads;
  return builder.kernel(std::move(kernel));
}

// Runs a schedule once on fresh data and expects the right product.
inline void expect_right(const Schedule& schedule, std::uint64_t seed) {
  ExecutorOptions options;
  options.flush_bytes = 0;
  Executor executor(schedule, options);
  executor.fill(seed);
  executor.run();
  const CheckResult check = executor.check();
  EXPECT_TRUE(check.passed) << schedule.name << ": relative error " << check.relative_error.front()
                            << ", largest element error " << check.largest_error;
}

inline bool have_gpus(std::size_t count) { return list_gpus().size() >= count; }

}  // namespace tritax::gpu

#define TRITAX_NEEDS_GPUS(count) \
  if (!::tritax::gpu::have_gpus(count)) GTEST_SKIP() << "needs " << (count) << " GPUs"
