#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "backend_hip/measured_timeline.hpp"
#include "gpu_schedules.hpp"
#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/timeline/op_times.hpp"
#include "tests/schedule/collective_gemm.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax::gpu {
namespace {

GemmKnobs knobs_for(Tile tile) {
  GemmKnobs knobs;
  knobs.tile_m = tile.m;
  knobs.tile_n = tile.n;
  knobs.pipeline = Pipeline::overlapped;
  return knobs;
}

TEST(ManyGpus, EveryPatternComputesTheProductOnEveryRank) {
  TRITAX_NEEDS_GPUS(2);
  const Machine machine = find_machine("h200-4");
  for (const int gpus : {2, 4}) {
    if (!have_gpus(static_cast<std::size_t>(gpus))) continue;
    for (const Pattern& pattern : gemm_all_scatter().patterns) {
      for (const LaunchMode launch : {LaunchMode::stream, LaunchMode::graph}) {
        GemmKnobs knobs = knobs_for({128, 256});
        knobs.launch = launch;
        knobs.peer_order = launch == LaunchMode::stream ? PeerOrder::fixed : PeerOrder::rotated;
        SCOPED_TRACE(std::string(pattern.name) + " on " + std::to_string(gpus) + " GPUs, " +
                     std::string(kLaunchModeNames[static_cast<std::size_t>(launch)]));
        try {
          expect_right(build(pattern, {2048, 4096, 1024, DType::bf16, gpus}, machine, knobs), 41);
          expect_right(build(pattern, {777, 1234, 500, DType::bf16, gpus}, machine, knobs), 42);
          // Slices that begin at multiples of 8 or 4 bytes, and at odd ones; those above at multiples of 2.
          expect_right(build(pattern, {640, 3000, 512, DType::bf16, gpus}, machine, knobs), 44);
          expect_right(build(pattern, {640, 1234, 512, DType::fp8, gpus}, machine, knobs), 45);
          expect_right(build(pattern, {64, 1024, 512, DType::fp16, gpus}, machine, knobs), 43);
        } catch (const UserError& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
  }
}

TEST(ManyGpus, EveryLockProtocolOrdersTiles) {
  TRITAX_NEEDS_GPUS(2);
  const Machine machine = find_machine("h200-4");
  for (const char* name : {"producer-consumer", "workgroup-specialised"}) {
    for (const LockProtocol lock :
         {LockProtocol::load_store, LockProtocol::exchange, LockProtocol::compare_and_swap}) {
      GemmKnobs knobs = knobs_for({128, 128});
      knobs.lock = lock;
      SCOPED_TRACE(name);
      expect_right(build(name, {2048, 2048, 512, DType::fp16, 2}, machine, knobs), 43);
    }
  }
}

TEST(ManyGpus, StampsOfEveryPatternEndWhenStoresHaveDrainedAndTheResultStaysRight) {
  TRITAX_NEEDS_GPUS(2);
  const Machine machine = find_machine("h200-4");
  for (const char* name :
       {"bulk-synchronous", "fused-sequential", "producer-consumer", "workgroup-specialised"}) {
    for (const std::int64_t n :
         {std::int64_t{2048}, std::int64_t{2040}}) {  // whole tiles, and ragged ones by threads
      SCOPED_TRACE(fmt::format("{} n = {}", name, n));
      const Schedule schedule = build(name, {1024, n, 512, DType::bf16, 2}, machine, knobs_for({128, 128}));
      ExecutorOptions options;
      options.stamps = true;
      Executor executor(schedule, options);
      executor.fill(45);
      executor.run();
      EXPECT_TRUE(executor.check().passed);
      const Timeline timeline = timeline_of(schedule, executor.stamps());
      const std::vector<double> begins = service_begins(timeline);
      std::map<std::pair<std::uint32_t, std::uint32_t>, double> drained;  // by kernel and workgroup
      for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
        const OpInterval& op = timeline.ops[i];
        EXPECT_LE(begins[i], op.end_ns);
        EXPECT_GE(op.place.cu, 0);
        double& last = drained[{op.place.kernel, op.place.workgroup}];
        // Stores drain in their order, and no flag overtakes them.
        if (is_asynchronous(op.kind) || op.kind == OpKind::signal) {
          EXPECT_GE(op.end_ns, last);
          last = op.end_ns;
        }
      }
      std::int64_t counted = 0;
      for (const OpTimes& times : op_times(timeline, schedule)) counted += times.count;
      EXPECT_EQ(counted, static_cast<std::int64_t>(timeline.ops.size()));
    }
  }
}

// Every rank computes its block of columns; copy engines bring it to the others, behind an event, by the one
// who has it or, after a host barrier, by the one who wants it.
TEST(ManyGpus, CopyEnginesMoveTilesBehindEvents) {
  TRITAX_NEEDS_GPUS(2);
  for (const bool pushes : {true, false}) {
    for (const std::int32_t cols : {128, 77}) {  // of a rank; rows that fill their pitch, and others
      SCOPED_TRACE(fmt::format("{} {}", pushes, cols));
      ScheduleBuilder builder("copy engines", 2);
      const std::int16_t a = builder.buffer({"A", DType::bf16, 256, 256, 128, 64});
      const std::int16_t b = builder.buffer({"B", DType::bf16, 256, cols, 64, 128});
      const std::int16_t c = builder.buffer({"C", DType::bf16, 256, 2 * cols, 128, 128});
      builder.result(c);
      builder.expect_column_blocks(a, b, c);
      for (int rank = 0; rank < 2; ++rank) {
        Kernel kernel;
        kernel.name = "gemm";
        kernel.rank = rank;
        kernel.tile = {128, 128, 64, 8, Pipeline::overlapped};
        const std::int32_t id = builder.kernel(std::move(kernel));
        for (std::int32_t row = 0; row < 256; row += 128) {
          builder.workgroup(id);
          builder.matmul(a, b, {row, 0, 128, cols}, 0, 256);
          builder.store(c, {row, rank * cols, 128, cols}, rank);
        }
        builder.launch(rank, id);
        builder.record_event(rank, 3);
        builder.wait_event(rank, 3, 1);
        if (!pushes) {
          builder.host(rank, HostOpKind::stream_synchronize, 1);
          builder.host(rank, HostOpKind::barrier);
        }
        const int from = pushes ? rank : 1 - rank;
        const Rect block{0, from * cols, 256, cols};
        builder.host_copy(rank, 1, c, block, 1 - from, c, 0, from * cols, from);
        builder.host(rank, HostOpKind::device_synchronize);
        builder.host(rank, HostOpKind::barrier);
      }
      expect_right(builder.finish(), 51);
    }
  }
}

TEST(ManyGpus, RemoteAtomicAdditionsAndLoadsArrive) {
  TRITAX_NEEDS_GPUS(2);
  // Rank 1 computes both column blocks' partial sums by halves of K and adds them into both ranks' result.
  ScheduleBuilder builder("remote atomics", 2);
  const std::int16_t a = builder.buffer({"A", DType::bf16, 128, 256, 128, 64});
  const std::int16_t b = builder.buffer({"B", DType::bf16, 256, 128, 64, 128});
  const std::int16_t c = builder.buffer({"C", DType::fp32, 128, 256, 128, 128});
  builder.result(c);
  builder.expect_column_blocks(a, b, c);
  for (int rank = 0; rank < 2; ++rank) {
    Kernel kernel;
    kernel.name = "halves";
    kernel.rank = rank;
    kernel.tile = {128, 128, 64, 8, Pipeline::overlapped};
    const std::int32_t id = builder.kernel(std::move(kernel));
    for (std::int32_t k = 0; k < 256; k += 128) {
      builder.workgroup(id);
      builder.matmul(a, b, {0, 0, 128, 128}, k, k + 128);
      for (int to = 0; to < 2; ++to) builder.atomic_add(c, {0, rank * 128, 128, 128}, to);
    }
    builder.launch(rank, id);
    builder.host(rank, HostOpKind::device_synchronize);
    builder.host(rank, HostOpKind::barrier);
  }
  expect_right(builder.finish(), 44);
}

// Every rank computes with rows that its peers have written beside its own input.
TEST(ManyGpus, AnAllGatherInPlaceAndItsProductAreRight) {
  TRITAX_NEEDS_GPUS(2);
  for (const int gpus : {2, 4}) {
    if (!have_gpus(static_cast<std::size_t>(gpus))) continue;
    SCOPED_TRACE(std::to_string(gpus) + " GPUs");
    const MatmulTile tile{128, 128, 64, 8, Pipeline::overlapped};
    expect_right(all_gather_gemm({gpus, 256, 512, 384, DType::bf16, tile}), 46);
    Schedule ragged = all_gather_gemm({gpus, 72, 200, 136, DType::fp16, tile});
    expect_right(ragged, 47);
    for (Op& op : ragged.ops) {
      if (op.kind == OpKind::matmul) op.k_end /= 2;
    }
    Executor executor(ragged, {});
    executor.fill(47);
    executor.run();
    EXPECT_FALSE(executor.check().passed);
  }
}

TEST(ManyGpus, AReduceScatterSumsTheProductsOfAllRanks) {
  TRITAX_NEEDS_GPUS(2);
  for (const int gpus : {2, 4}) {
    if (!have_gpus(static_cast<std::size_t>(gpus))) continue;
    SCOPED_TRACE(std::to_string(gpus) + " GPUs");
    expect_right(gemm_reduce_scatter({gpus, 128, 320, 128, DType::bf16, 64}), 48);
  }
}

TEST(ManyGpus, ARankThatWaitsInVainReleasesItsPeers) {
  TRITAX_NEEDS_GPUS(2);
  ScheduleBuilder builder("hang on two", 2);
  const std::int16_t flag = builder.flags("never", 2);
  for (int rank = 0; rank < 2; ++rank) {
    Kernel kernel;
    kernel.name = "waits";
    kernel.rank = rank;
    kernel.resources.threads = 64;
    const std::int32_t id = builder.kernel(std::move(kernel));
    builder.workgroup(id);
    if (rank == 1) builder.wait(flag, 1, 1, Scope::system, LockProtocol::load_store);
    builder.signal(flag, 0, 1, 0, Scope::system, LockProtocol::load_store);
    if (rank == 0) builder.wait(flag, 0, 2, Scope::system, LockProtocol::load_store);
    builder.launch(rank, id);
    builder.host(rank, HostOpKind::device_synchronize);
    builder.host(rank, HostOpKind::barrier);
  }
  const Schedule schedule = builder.finish();
  ExecutorOptions options;
  options.spin_limit_s = 0.3;
  Executor executor(schedule, options);
  executor.fill(1);
  try {
    executor.run();
    FAIL() << "the run came back as if nothing had happened";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 workgroup 0 operation 0 (wait), flag 'never'[1] >= 1"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tritax::gpu
