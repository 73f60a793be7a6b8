// The functional executor driven by hand: the tests call it in an order of their own choice, as a simulator
// would.
#include "sim/functional.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/core/error.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {
namespace {

// Plays the simulator.
class HandRun {
 public:
  explicit HandRun(const Schedule& schedule) : executor_(schedule, 1) {}

  void start(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op) {
    executor_.op_started({kernel, workgroup, op, 0, 0}, ++now_ns_);
  }
  void finish(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op) {
    executor_.op_finished({kernel, workgroup, op, 0, 0}, ++now_ns_);
  }
  void op(std::uint32_t kernel, std::uint32_t workgroup, std::uint32_t op) {
    start(kernel, workgroup, op);
    finish(kernel, workgroup, op);
  }
  void host(int rank, std::uint32_t host_op) {
    executor_.host_op_started(rank, host_op, ++now_ns_);
    executor_.host_op_finished(rank, host_op, ++now_ns_);
  }
  void host_start(int rank, std::uint32_t host_op) { executor_.host_op_started(rank, host_op, ++now_ns_); }
  void host_finish(int rank, std::uint32_t host_op) { executor_.host_op_finished(rank, host_op, ++now_ns_); }
  void begin(std::uint32_t kernel) { executor_.kernel_started(kernel, ++now_ns_); }
  void end(std::uint32_t kernel) { executor_.kernel_finished(kernel, ++now_ns_); }

  FunctionalResult result() const { return executor_.result(); }
  std::vector<std::string> stale_reads() const { return executor_.result().stale_reads; }

 private:
  FunctionalExecutor executor_;
  double now_ns_ = 0;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr Rect kOnlyTile{0, 0, 4, 4};

// Buffers of a product of 4x4 matrices a rank, one tile each.
struct TinyProduct {
  explicit TinyProduct(int ranks) : builder("test", ranks) {
    a = builder.buffer({"A", DType::fp16, 4, 4, 4, 4});
    b = builder.buffer({"B", DType::fp16, 4, 4, 4, 4});
    c = builder.buffer({"C", DType::fp16, 4, 4 * ranks, 4, 4});
    builder.result(c);
    builder.expect_column_blocks(a, b, c);
  }
  void gemm_kernel(const std::string& name, int rank) {
    Kernel kernel;
    kernel.name = name;
    kernel.rank = rank;
    kernel.tile = {4, 4, 4, 1, Pipeline::serial};
    last_kernel = builder.kernel(kernel);
    builder.workgroup(last_kernel);
  }
  void data_kernel(const std::string& name, int rank) {
    Kernel kernel;
    kernel.name = name;
    kernel.rank = rank;
    last_kernel = builder.kernel(kernel);
    builder.workgroup(last_kernel);
  }
  void signal(std::int16_t flag, Scope scope = Scope::gpu, int rank = 0, std::int32_t value = 1) {
    builder.signal(flag, 0, value, rank, scope, LockProtocol::load_store);
  }
  void wait(std::int16_t flag, Scope scope = Scope::gpu, std::int32_t value = 1) {
    builder.wait(flag, 0, value, scope, LockProtocol::load_store);
  }

  ScheduleBuilder builder;
  std::int16_t a = 0, b = 0, c = 0;
  std::int32_t last_kernel = 0;
};

// Kernel 0 computes C and signals; kernel 1, on another stream, waits and reads it.
Schedule producer_and_consumer(Scope signal_scope = Scope::gpu, Scope wait_scope = Scope::gpu) {
  TinyProduct draft(1);
  const auto ready = draft.builder.flags("ready", 1);
  draft.gemm_kernel("gemm", 0);
  draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 4);
  draft.builder.store(draft.c, kOnlyTile, 0);
  draft.signal(ready, signal_scope);
  draft.data_kernel("reader", 0);
  draft.wait(ready, wait_scope);
  draft.builder.load(draft.c, kOnlyTile, 0);
  draft.builder.launch(0, 0, 0);
  draft.builder.launch(0, 1, 1);
  return draft.builder.finish();
}

void launch_both(HandRun& run) {
  run.host(0, 0);
  run.host(0, 1);
  run.begin(0);
  run.begin(1);
}

TEST(FunctionalExecutor, ComputesTheProductOfOneTile) {
  const Schedule schedule = producer_and_consumer();
  HandRun run(schedule);
  launch_both(run);
  run.op(0, 0, 0);
  run.op(0, 0, 1);
  run.op(0, 0, 2);
  run.op(1, 0, 0);
  run.op(1, 0, 1);
  EXPECT_TRUE(run.stale_reads().empty());
  EXPECT_LT(run.result().max_relative_error, 1e-6);
}

TEST(FunctionalExecutor, SaysThatAResultIsInfinitelyWrongWhileItIsNotWritten) {
  const Schedule schedule = producer_and_consumer();
  HandRun run(schedule);
  launch_both(run);
  run.op(0, 0, 0);
  run.start(0, 0, 1);
  EXPECT_TRUE(std::isinf(run.result().max_relative_error));
  run.finish(0, 0, 1);
  EXPECT_LT(run.result().max_relative_error, 1e-6);
}

TEST(FunctionalExecutor, ReportsALuckyReadThatSkippedItsWait) {
  const Schedule schedule = producer_and_consumer();
  HandRun run(schedule);
  launch_both(run);
  run.op(0, 0, 0);
  run.op(0, 0, 1);
  run.op(0, 0, 2);
  run.op(1, 0, 1);  // the data is there, but nothing says so
  ASSERT_EQ(run.stale_reads().size(), 1U);
  const std::string message = run.stale_reads()[0];
  EXPECT_TRUE(contains(message, "kernel 'reader' rank 0 workgroup 0 operation 1 (load)")) << message;
  EXPECT_TRUE(contains(message, "C[0,0]")) << message;
  EXPECT_TRUE(contains(message, "kernel 'gemm' rank 0 workgroup 0 operation 1 (store)")) << message;
}

TEST(FunctionalExecutor, ReportsAReadOfWhatNobodyWrote) {
  const Schedule schedule = producer_and_consumer();
  HandRun run(schedule);
  launch_both(run);
  run.op(1, 0, 1);
  ASSERT_EQ(run.stale_reads().size(), 1U);
  EXPECT_TRUE(contains(run.stale_reads()[0], "never written")) << run.stale_reads()[0];
}

TEST(FunctionalExecutor, ReportsAReadOfAStoreInFlightEvenByItsOwnWorkgroup) {
  TinyProduct draft(1);
  draft.gemm_kernel("gemm", 0);
  draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 4);
  draft.builder.store(draft.c, kOnlyTile, 0);
  draft.builder.load(draft.c, kOnlyTile, 0);
  draft.builder.launch(0, 0);
  const Schedule schedule = draft.builder.finish();
  HandRun early(schedule);
  early.host(0, 0);
  early.begin(0);
  early.op(0, 0, 0);
  early.start(0, 0, 1);
  early.op(0, 0, 2);
  ASSERT_EQ(early.stale_reads().size(), 1U);
  EXPECT_TRUE(contains(early.stale_reads()[0], "still being written")) << early.stale_reads()[0];

  HandRun drained(schedule);
  drained.host(0, 0);
  drained.begin(0);
  for (const std::uint32_t op : {0U, 1U, 2U}) drained.op(0, 0, op);
  EXPECT_TRUE(drained.stale_reads().empty());
}

TEST(FunctionalExecutor, SignalsOfWorkgroupScopeOrderNothing) {
  const Schedule schedule = producer_and_consumer(Scope::workgroup, Scope::gpu);
  HandRun run(schedule);
  launch_both(run);
  for (const std::uint32_t op : {0U, 1U, 2U}) run.op(0, 0, op);
  run.op(1, 0, 0);
  run.op(1, 0, 1);
  EXPECT_EQ(run.stale_reads().size(), 1U);
}

TEST(FunctionalExecutor, StoresTheAccumulatorOfItsStartThoughTheNextMatmulRuns) {
  TinyProduct draft(1);
  draft.gemm_kernel("gemm", 0);
  draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 4);
  draft.builder.store(draft.c, kOnlyTile, 0);
  draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 2);
  draft.builder.launch(0, 0);
  const Schedule schedule = draft.builder.finish();
  HandRun run(schedule);
  run.host(0, 0);
  run.begin(0);
  run.op(0, 0, 0);
  run.start(0, 0, 1);
  run.op(0, 0, 2);
  run.finish(0, 0, 1);
  EXPECT_LT(run.result().max_relative_error, 1e-6);
}

TEST(FunctionalExecutor, AddsKRangesUpAndStartsFromZeroAfterAStore) {
  TinyProduct draft(1);
  draft.gemm_kernel("gemm", 0);
  draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 4);
  draft.builder.store(draft.c, kOnlyTile, 0);
  draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 1);
  draft.builder.matmul(draft.a, draft.b, kOnlyTile, 1, 4);
  draft.builder.store(draft.c, kOnlyTile, 0);
  draft.builder.launch(0, 0);
  const Schedule schedule = draft.builder.finish();
  HandRun run(schedule);
  run.host(0, 0);
  run.begin(0);
  for (const std::uint32_t op : {0U, 1U, 2U, 3U}) run.op(0, 0, op);
  EXPECT_LT(run.result().max_relative_error, 1e-6);
  run.op(0, 0, 4);
  EXPECT_LT(run.result().max_relative_error, 1e-6);
}

TEST(FunctionalExecutor, AddsAtomicallyInAnyOrderAndAReaderNeedsAllAdders) {
  // Split-K over three kernels on three streams: a store of the first part, two adds after it, a reader.
  TinyProduct draft(1);
  const auto stored = draft.builder.flags("stored", 1);
  const auto added = draft.builder.flags("added", 1);
  draft.gemm_kernel("first", 0);
  draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 2);
  draft.builder.store(draft.c, kOnlyTile, 0);
  draft.signal(stored);
  for (const int part : {0, 1}) {
    draft.gemm_kernel("add", 0);
    draft.builder.matmul(draft.a, draft.b, kOnlyTile, 2 + part, 3 + part);
    draft.wait(stored);
    draft.builder.atomic_add(draft.c, kOnlyTile, 0);
    draft.signal(added);
  }
  draft.data_kernel("reader", 0);
  draft.wait(added, Scope::gpu, 2);
  draft.builder.load(draft.c, kOnlyTile, 0);
  for (int kernel = 0; kernel < 4; ++kernel) draft.builder.launch(0, kernel, kernel);
  const Schedule schedule = draft.builder.finish();

  const auto run_adds = [](HandRun& run) {
    for (std::uint32_t kernel = 0; kernel < 4; ++kernel) run.host(0, kernel);
    for (std::uint32_t kernel = 0; kernel < 4; ++kernel) run.begin(kernel);
    for (const std::uint32_t op : {0U, 1U, 2U}) run.op(0, 0, op);
    for (const std::uint32_t kernel : {2U, 1U}) {
      run.op(kernel, 0, 0);
      run.op(kernel, 0, 1);
    }
    run.start(1, 0, 2);  // both in flight at once
    run.start(2, 0, 2);
    run.finish(1, 0, 2);
    run.finish(2, 0, 2);
    run.op(1, 0, 3);
    run.op(2, 0, 3);
  };
  HandRun ordered(schedule);
  run_adds(ordered);
  ordered.op(3, 0, 0);
  ordered.op(3, 0, 1);
  EXPECT_TRUE(ordered.stale_reads().empty());
  EXPECT_LT(ordered.result().max_relative_error, 1e-6);

  HandRun unordered(schedule);
  run_adds(unordered);
  unordered.op(3, 0, 1);
  EXPECT_EQ(unordered.stale_reads().size(), 1U);
}

// Two signallers on one flag; the waiter reads the tile of kernel `read`.
Schedule two_signallers(std::int32_t awaited) {
  TinyProduct draft(2);
  const auto ready = draft.builder.flags("ready", 1);
  for (const int part : {0, 1}) {
    draft.gemm_kernel("gemm", 0);
    draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 4);
    draft.builder.store(draft.c, {0, 4 * part, 4, 4}, 0);
    draft.signal(ready);
  }
  draft.data_kernel("reader", 0);
  draft.wait(ready, Scope::gpu, awaited);
  draft.builder.load(draft.c, kOnlyTile, 0);
  for (int kernel = 0; kernel < 3; ++kernel) draft.builder.launch(0, kernel, kernel);
  return draft.builder.finish();
}

std::size_t stale_reads_behind_two_signallers(std::int32_t awaited) {
  const Schedule schedule = two_signallers(awaited);
  HandRun run(schedule);
  for (std::uint32_t kernel = 0; kernel < 3; ++kernel) run.host(0, kernel);
  for (std::uint32_t kernel = 0; kernel < 3; ++kernel) run.begin(kernel);
  for (const std::uint32_t kernel : {0U, 1U}) {
    for (const std::uint32_t op : {0U, 1U, 2U}) run.op(kernel, 0, op);
  }
  run.op(2, 0, 0);
  run.op(2, 0, 1);
  return run.stale_reads().size();
}

TEST(FunctionalExecutor, AWaitForAllSignalsAcquiresEachOfThem) {
  EXPECT_EQ(stale_reads_behind_two_signallers(2), 0U);
}

TEST(FunctionalExecutor, AWaitForFewerSignalsThanCameAcquiresNoneThatItCouldHaveDoneWithout) {
  EXPECT_EQ(stale_reads_behind_two_signallers(1), 1U);
}

TEST(FunctionalExecutor, AWaitForTheFirstOfTwoSignalsOfOneWorkgroupAcquiresTheFirst) {
  TinyProduct draft(1);
  const auto ready = draft.builder.flags("ready", 1);
  draft.gemm_kernel("gemm", 0);
  draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 4);
  draft.builder.store(draft.c, kOnlyTile, 0);
  draft.signal(ready);
  draft.signal(ready);
  draft.data_kernel("reader", 0);
  draft.wait(ready);
  draft.builder.load(draft.c, kOnlyTile, 0);
  draft.builder.launch(0, 0, 0);
  draft.builder.launch(0, 1, 1);
  const Schedule schedule = draft.builder.finish();
  HandRun run(schedule);
  launch_both(run);
  for (const std::uint32_t op : {0U, 1U, 2U, 3U})
    run.op(0, 0, op);  // both signals are there before the wait ends
  run.op(1, 0, 0);
  run.op(1, 0, 1);
  EXPECT_TRUE(run.stale_reads().empty());
}

// Rank 0 computes and copies to rank 1, whose reader is ordered by `how`.
enum class Ordering { stream, system_signal, gpu_signal, host_barrier, synchronise_only };

std::size_t stale_reads_on_the_peer(Ordering how) {
  TinyProduct draft(2);
  const auto arrived = draft.builder.flags("arrived", 1);
  const bool flags = how == Ordering::system_signal || how == Ordering::gpu_signal;
  const Scope scope = how == Ordering::gpu_signal ? Scope::gpu : Scope::system;
  draft.gemm_kernel("gemm", 0);  // 0
  draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 4);
  draft.builder.store(draft.c, kOnlyTile, 0);
  draft.data_kernel("scatter", 0);  // 1: in the same stream, so after the GEMM
  draft.builder.copy(draft.c, kOnlyTile, 1, draft.c, 0, 0, 0);
  if (flags) draft.signal(arrived, scope, 1);
  draft.data_kernel("reader", 1);  // 2
  if (flags) draft.wait(arrived, Scope::system);
  draft.builder.load(draft.c, kOnlyTile, 1);
  for (const int rank : {0, 1}) {
    if (rank == 0) {
      draft.builder.launch(0, 0);
      draft.builder.launch(0, 1);
      draft.builder.host(0, HostOpKind::device_synchronize);
    }
    if (how == Ordering::host_barrier) draft.builder.host(rank, HostOpKind::barrier);
  }
  draft.builder.launch(1, 2);
  const Schedule schedule = draft.builder.finish();

  HandRun run(schedule);
  run.host(0, 0);
  run.host(0, 1);
  run.begin(0);
  run.op(0, 0, 0);
  run.op(0, 0, 1);
  run.end(0);
  run.begin(1);
  run.op(1, 0, 0);
  if (flags) run.op(1, 0, 1);
  run.end(1);
  run.host(0, 2);
  std::uint32_t launch = 0;
  if (how == Ordering::host_barrier) {
    run.host_start(1, 0);
    run.host_start(0, 3);
    run.host_finish(1, 0);
    run.host_finish(0, 3);
    launch = 1;
  }
  run.host(1, launch);
  run.begin(2);
  std::uint32_t op = 0;
  if (flags) run.op(2, 0, op++);
  run.op(2, 0, op);
  return run.stale_reads().size();
}

TEST(FunctionalExecutor, AHostBarrierAfterSynchronisingOrdersAcrossRanks) {
  EXPECT_EQ(stale_reads_on_the_peer(Ordering::host_barrier), 0U);
}

TEST(FunctionalExecutor, ASystemScopeSignalOrdersAcrossRanks) {
  EXPECT_EQ(stale_reads_on_the_peer(Ordering::system_signal), 0U);
}

TEST(FunctionalExecutor, AGpuScopeSignalDoesNotOrderAcrossRanks) {
  EXPECT_EQ(stale_reads_on_the_peer(Ordering::gpu_signal), 1U);
}

TEST(FunctionalExecutor, SynchronisingOneRankOrdersNothingOnAnother) {
  EXPECT_EQ(stale_reads_on_the_peer(Ordering::synchronise_only), 1U);
}

TEST(FunctionalExecutor, NodesOfAGraphFollowEachOtherInTheirStreamOnly) {
  for (const int reader_stream : {0, 1}) {
    TinyProduct draft(1);
    draft.gemm_kernel("gemm", 0);
    draft.builder.matmul(draft.a, draft.b, kOnlyTile, 0, 4);
    draft.builder.store(draft.c, kOnlyTile, 0);
    draft.data_kernel("reader", 0);
    draft.builder.load(draft.c, kOnlyTile, 0);
    draft.builder.graph_launch(0, {{0, 0}, {1, reader_stream}});
    const Schedule schedule = draft.builder.finish();
    HandRun run(schedule);
    run.host(0, 0);
    run.begin(0);
    run.op(0, 0, 0);
    run.op(0, 0, 1);
    run.end(0);
    run.begin(1);
    run.op(1, 0, 0);
    EXPECT_EQ(run.stale_reads().size(), reader_stream == 0 ? 0U : 1U);
  }
}

TEST(FunctionalExecutor, RefusesWhatItCannotCompare) {
  TinyProduct draft(1);
  Schedule schedule = draft.builder.finish();
  EXPECT_NO_THROW(FunctionalExecutor(schedule, 1));
  Schedule no_reference = schedule;
  no_reference.reference.clear();
  EXPECT_THROW(FunctionalExecutor(no_reference, 1), UserError);
}

TEST(FunctionalExecutor, RefusesBuffersThatNoMemoryHolds) {
  TinyProduct draft(2);
  draft.gemm_kernel("gemm", 0);
  draft.builder.buffer({"huge", DType::fp16, 1 << 30, 1 << 30, 1, 1});
  draft.builder.launch(0, draft.last_kernel);
  const Schedule schedule = draft.builder.finish();
  try {
    FunctionalExecutor(schedule, 1);
    FAIL() << "not refused";
  } catch (const UserError& error) {
    EXPECT_TRUE(contains(error.what(), "'huge' is 1073741824 x 1073741824 on each of 2 ranks"))
        << error.what();
  }
}

TEST(FunctionalExecutor, WhatFilledRegistersHoldIsNoResult) {
  TinyProduct draft(1);
  draft.gemm_kernel("gemm", 0);
  draft.builder.store(draft.c, kOnlyTile, 0);
  draft.builder.launch(0, draft.last_kernel);
  Schedule schedule = draft.builder.finish();
  schedule.kernels[0].registers_filled = true;
  HandRun run(schedule);
  run.host(0, 0);
  run.begin(0);
  run.op(0, 0, 0);
  run.end(0);
  EXPECT_TRUE(std::isinf(run.result().max_relative_error));
}

TEST(FunctionalExecutor, RefusesToStoreATileOfAnotherShapeThanTheAccumulator) {
  TinyProduct draft(1);
  draft.gemm_kernel("gemm", 0);
  draft.builder.matmul(draft.a, draft.b, {0, 0, 2, 4}, 0, 4);
  draft.builder.store(draft.c, kOnlyTile, 0);
  draft.builder.launch(0, 0);
  const Schedule schedule = draft.builder.finish();
  HandRun run(schedule);
  run.host(0, 0);
  run.begin(0);
  run.op(0, 0, 0);
  EXPECT_THROW(run.start(0, 0, 1), UserError);
}

}  // namespace
}  // namespace tritax
