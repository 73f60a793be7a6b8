// Work queues on GPUs: items that workgroups draw.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "backend_hip/measured_timeline.hpp"
#include "gpu_schedules.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/items.hpp"

namespace tritax::gpu {
namespace {

void claim_all(ScheduleBuilder& builder, std::int32_t kernel, int workers, std::int16_t queue, int items) {
  for (int w = 0; w < workers; ++w) {
    builder.workgroup(kernel);
    builder.claim_items(queue, 0, 0, items);
  }
}

Schedule gemm_from_queue(const Problem& problem, Tile tile, int workers) {
  ScheduleBuilder builder(fmt::format("queue of {} workgroups", workers), 1);
  const Operands buffers = operands(builder, problem, tile);
  const std::int16_t queue = builder.flags("queue", 1);
  const std::int32_t kernel = matmul_kernel(builder, "gemm", tile, problem.dtype);
  const std::vector<Rect> tiles = tiles_of(problem, tile);
  claim_all(builder, kernel, workers, queue, static_cast<int>(tiles.size()));
  for (const Rect& rect : tiles) {
    builder.item(kernel);
    builder.matmul(buffers.a, buffers.b, rect, 0, problem.k / 2);
    builder.matmul(buffers.a, buffers.b, rect, problem.k / 2, problem.k);
    builder.store(buffers.c, rect, 0);
  }
  builder.launch(0, kernel);
  return builder.finish();
}

TEST(WorkQueueOnGpu, ComputesEveryTileOnceWhoeverDrawsIt) {
  TRITAX_NEEDS_GPUS(1);
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp8}) {
    for (const Tile tile : {Tile{128, 256}, Tile{256, 128}, Tile{128, 128}, Tile{64, 256}}) {
      SCOPED_TRACE(fmt::format("{} {}x{}", name_of(dtype), tile.m, tile.n));
      for (const int workers : {1, 5, 264}) {
        expect_right(gemm_from_queue({640, 768, 1024, dtype}, tile, workers), 51);
        expect_right(gemm_from_queue({333, 391, 256, dtype}, tile, workers), 52);
      }
    }
  }
}

// Tiles go to a staging buffer, and items behind them copy them into C; own tiles before, between and behind
// two queues.
Schedule staged(int workers) {
  const Problem problem{512, 1024, 256, DType::bf16};
  ScheduleBuilder builder("staged through a queue", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::int16_t staging = builder.buffer({"staging", problem.dtype, problem.m, problem.n, 128, 128});
  const std::int16_t queue = builder.flags("queue", 2);
  const std::int16_t ready = builder.flags("ready", 64);
  const std::int32_t kernel = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
  const std::vector<Rect> tiles = tiles_of(problem, {128, 128});
  const int own = workers;  // tiles that workgroups compute beside the queues
  const int drawn = static_cast<int>(tiles.size()) - own;
  const auto compute = [&](int t, std::int16_t to) {
    builder.matmul(buffers.a, buffers.b, tiles[static_cast<std::size_t>(t)], 0, problem.k);
    builder.store(to, tiles[static_cast<std::size_t>(t)], 0);
  };
  const auto copy = [&](int t) {
    const Rect& rect = tiles[static_cast<std::size_t>(t)];
    builder.copy(buffers.c, rect, 0, staging, rect.row, rect.col, 0);
  };
  for (int w = 0; w < workers; ++w) {
    builder.workgroup(kernel);
    builder.claim_items(queue, 0, 0, drawn);
    compute(drawn + w, buffers.c);
    builder.claim_items(queue, 1, drawn, drawn);
  }
  for (int t = 0; t < drawn; ++t) {
    builder.item(kernel);
    compute(t, staging);
    builder.signal(ready, t, 1, 0, Scope::gpu, LockProtocol::load_store);
  }
  for (int t = 0; t < drawn; ++t) {
    builder.item(kernel);
    builder.wait(ready, t, 1, Scope::gpu, LockProtocol::load_store);
    copy(t);
  }
  builder.launch(0, kernel);
  return builder.finish();
}

TEST(WorkQueueOnGpu, ItemsReadWhatOthersHaveSignalled) {
  TRITAX_NEEDS_GPUS(1);
  for (const int workers : {1, 7}) {
    const Schedule schedule = staged(workers);
    ASSERT_TRUE(check_schedule(schedule).empty());
    expect_right(schedule, 53);
  }
}

TEST(WorkQueueOnGpu, KernelsWithoutMatmulDrawItemsToo) {
  TRITAX_NEEDS_GPUS(1);
  const Problem problem{512, 512, 256, DType::bf16};
  for (const int threads : {256, 512, 1024}) {
    ScheduleBuilder builder("plain queue", 1);
    const Operands buffers = operands(builder, problem, {128, 128});
    const std::int16_t staging = builder.buffer({"staging", problem.dtype, problem.m, problem.n, 128, 128});
    const std::int16_t queue = builder.flags("queue", 1);
    const std::int32_t compute = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
    const std::int32_t move = plain_kernel(builder, "move", threads);
    for (const Rect& rect : tiles_of(problem, {128, 128})) {
      builder.workgroup(compute);
      builder.matmul(buffers.a, buffers.b, rect, 0, problem.k);
      builder.store(staging, rect, 0);
    }
    const std::vector<Rect> strips = tiles_of(problem, {8, 512});
    claim_all(builder, move, 5, queue, static_cast<int>(strips.size()));
    for (const Rect& rect : strips) {
      builder.item(move);
      builder.load(staging, rect, 0);
      builder.store(buffers.c, rect, 0);
    }
    builder.launch(0, compute);
    builder.launch(0, move);
    expect_right(builder.finish(), 54);
  }
}

TEST(WorkQueueOnGpu, QueuesAreFullAgainInTheNextRun) {
  TRITAX_NEEDS_GPUS(1);
  const Schedule schedule = gemm_from_queue({1024, 1024, 512, DType::bf16}, {128, 128}, 9);
  ExecutorOptions options;
  options.flush_bytes = 0;
  Executor executor(schedule, options);
  for (std::uint64_t run = 0; run < 3; ++run) {
    executor.fill(55 + run);
    executor.run();
    EXPECT_TRUE(executor.check().passed) << "run " << run;
  }
}

TEST(WorkQueueOnGpu, StampsTellWhoRanWhichItem) {
  TRITAX_NEEDS_GPUS(1);
  const Schedule schedule = gemm_from_queue({1024, 1024, 512, DType::bf16}, {128, 128}, 9);
  ExecutorOptions options;
  options.flush_bytes = 0;
  options.stamps = true;
  Executor executor(schedule, options);
  executor.fill(58);
  executor.run();
  ASSERT_TRUE(executor.check().passed);
  const Timeline timeline = timeline_of(schedule, executor.stamps());
  const Kernel& kernel = schedule.kernels[0];
  std::map<std::uint32_t, int> runs;     // of every operation of an item
  std::map<std::uint32_t, double> ends;  // of every workgroup: its last operation but stores
  int claims = 0;
  for (const OpInterval& op : timeline.ops) {
    if (op.kind == OpKind::claim) {
      ++claims;
    } else {
      ++runs[kernel.workgroups[op.place.workgroup].first_op + op.place.op];
    }
    if (is_asynchronous(op.kind)) continue;
    EXPECT_LE(ends[op.place.workgroup], op.begin_ns + 50) << "workgroup " << op.place.workgroup;
    ends[op.place.workgroup] = op.end_ns;
  }
  EXPECT_EQ(runs.size(), schedule.ops.size() - kernel.workgroups.size());
  for (const auto& [op, count] : runs) EXPECT_EQ(count, 1);
  EXPECT_EQ(claims, static_cast<int>(kernel.items.size() + kernel.workgroups.size()));
}

// Every rank computes its block of columns; half of its tiles are stored on all ranks at once, the other
// half are sent by items at the end of the queue.
Schedule all_scatter_from_queue(int ranks, int workers) {
  const std::int32_t n = 256 * ranks;
  ScheduleBuilder builder(fmt::format("all-scatter of {} ranks from queues", ranks), ranks);
  const std::int16_t a = builder.buffer({"A", DType::bf16, 1024, 512, 128, 64});
  const std::int16_t b = builder.buffer({"B", DType::bf16, 512, 256, 64, 128});
  const std::int16_t c = builder.buffer({"C", DType::bf16, 1024, n, 128, 128});
  builder.result(c);
  builder.expect_column_blocks(a, b, c);
  const std::int16_t queue = builder.flags("queue", 1);
  const std::int16_t ready = builder.flags("ready", 8);
  for (int rank = 0; rank < ranks; ++rank) {
    Kernel kernel;
    kernel.name = "workers";
    kernel.rank = rank;
    kernel.tile = {128, 128, 64, 8, Pipeline::overlapped};
    const std::int32_t k = builder.kernel(kernel);
    claim_all(builder, k, workers, queue, 16 + 8);
    for (int t = 0; t < 16; ++t) {
      builder.item(k);
      const Rect tile{t / 2 * 128, t % 2 * 128, 128, 128};
      const Rect at{tile.row, 256 * rank + tile.col, 128, 128};
      builder.matmul(a, b, tile, 0, 512);
      builder.store(c, at, rank);
      if (t % 2 == 0) {
        builder.signal(ready, t / 2, 1, rank, Scope::gpu, LockProtocol::load_store);
        continue;
      }
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer != rank) builder.store(c, at, peer);
      }
    }
    for (int t = 0; t < 8; ++t) {
      builder.item(k);
      builder.wait(ready, t, 1, Scope::gpu, LockProtocol::load_store);
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer == rank) continue;
        builder.copy(c, {t * 128, 256 * rank, 128, 128}, peer, c, t * 128, 256 * rank, rank);
      }
    }
    builder.launch(rank, k);
  }
  return builder.finish();
}

TEST(WorkQueueOnGpu, ItemsStoreOnOtherGpus) {
  TRITAX_NEEDS_GPUS(2);
  for (const int ranks : {2, 4}) {
    if (!have_gpus(static_cast<std::size_t>(ranks))) continue;
    for (const int workers : {1, 4, 40}) {
      const Schedule schedule = all_scatter_from_queue(ranks, workers);
      ASSERT_TRUE(check_schedule(schedule).empty());
      expect_right(schedule, 59);
    }
  }
}

}  // namespace
}  // namespace tritax::gpu
