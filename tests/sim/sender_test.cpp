// Stores beside the matmuls of their workgroup, on schedules small enough to be timed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "hand_machine.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::kTileBytes;
using hand::Observed;
using hand::run;

Machine sending_machine() {
  Machine machine = hand::machine(2);
  machine.gpu.async_tile_store = true;
  machine.fabric.link_raw_gb_per_s = kTileBytes / 400;  // a tile takes 400 ns to the peer
  return machine;
}

// One workgroup computes `tiles` tiles and stores each `stores` times to the peer.
Schedule computed_and_sent(int tiles, int stores) {
  Draft draft(2);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(kernel);
  for (int t = 0; t < tiles; ++t) {
    draft.matmul(t);
    for (int s = 0; s < stores; ++s) draft.builder.store(draft.c, Draft::tile(t), 1);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return draft.builder.finish();
}

TEST(Sender, StoresATileToSeveralRanksBesideTheNextMatmul) {
  const Observed out = run(computed_and_sent(3, 2), sending_machine());
  EXPECT_NEAR(out.result.makespan_ns, 3 * kStepNs + 2 * 400, kExact);
  EXPECT_NEAR((out.seen.ops.at({0, 0, 3}).begin_ns), kStepNs, kExact);  // the second matmul
}

TEST(Sender, LetsATileWaitForTheStagingArea) {
  // Three stores take longer than a matmul: each tile waits for the last one's.
  const Observed out = run(computed_and_sent(3, 3), sending_machine());
  EXPECT_NEAR(out.result.makespan_ns, kStepNs + 3 * 3 * 400, kExact);
}

TEST(Sender, TakesTheWorkgroupTimeForWhatItPassesBy) {
  Machine machine = sending_machine();
  machine.interpreter.passed_op_ns = 50;
  const Observed out = run(computed_and_sent(3, 2), machine);
  EXPECT_NEAR(out.result.makespan_ns, 3 * kStepNs + 2 * 50 + 2 * 400, kExact);
  EXPECT_NEAR((out.seen.ops.at({0, 0, 3}).begin_ns), kStepNs + 50, kExact);  // the second matmul
  EXPECT_NEAR(run(computed_and_sent(3, 1), machine).result.makespan_ns, 3 * kStepNs + 400, kExact);
  machine.gpu.async_tile_store = false;
  EXPECT_NEAR(run(computed_and_sent(3, 2), machine).result.makespan_ns, 3 * (kStepNs + 400) + 400, kExact);
}

TEST(Sender, TakesTheWorkgroupTimeForSignals) {
  Draft draft(1);
  const std::int16_t done = draft.builder.flags("done", 1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(kernel);
  for (int t = 0; t < 2; ++t) {
    draft.matmul(t);
    draft.builder.signal(done, 0, 1, 0, Scope::gpu, LockProtocol::load_store);
  }
  draft.matmul(2);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Schedule schedule = draft.builder.finish();
  Machine machine = sending_machine();
  const double without_ns = run(schedule, machine).result.makespan_ns;
  machine.interpreter.passed_op_ns = 50;
  EXPECT_NEAR(run(schedule, machine).result.makespan_ns - without_ns, 2 * 50, kExact);
}

// One workgroup signals, another of the same kernel waits and has a barrier.
TEST(Sender, TakesTimeToRaiseASignalAndForAllWavesToMeet) {
  Draft draft(1);
  const std::int16_t done = draft.builder.flags("done", 1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(kernel);
  draft.matmul(0);
  draft.builder.signal(done, 0, 1, 0, Scope::gpu, LockProtocol::load_store);
  draft.builder.workgroup(kernel);
  draft.builder.wait(done, 0, 1, Scope::gpu, LockProtocol::load_store);
  draft.builder.barrier();
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Schedule schedule = draft.builder.finish();
  Machine machine = sending_machine();
  machine.gpu.poll_load_ns = 0;  // else the waiter sees the flag with its next poll only
  const double without_ns = run(schedule, machine).result.makespan_ns;
  machine.interpreter.sent_signal_ns = 50;
  EXPECT_NEAR(run(schedule, machine).result.makespan_ns - without_ns, 50, kExact);
  machine.interpreter.meet_ns = 30;
  EXPECT_NEAR(run(schedule, machine).result.makespan_ns - without_ns, 50 + 2 * 30, kExact);
  machine.gpu.async_tile_store = false;
  const double of_threads_ns = run(schedule, machine).result.makespan_ns;
  machine.interpreter.sent_signal_ns = machine.interpreter.meet_ns = 0;
  EXPECT_EQ(run(schedule, machine).result.makespan_ns, of_threads_ns);
}

TEST(Sender, WithoutItTheMatmulWaitsForAllStoresButOne) {
  Machine machine = sending_machine();
  machine.gpu.async_tile_store = false;
  const Observed out = run(computed_and_sent(3, 2), machine);
  EXPECT_NEAR(out.result.makespan_ns, 3 * (kStepNs + 400) + 400, kExact);
}

TEST(Sender, ChargesTheWayThroughTheStagingAreaToTheWorkgroup) {
  Machine machine = sending_machine();
  machine.interpreter.stage_op_ns = 50;
  machine.interpreter.stage_gb_per_s = kTileBytes / 100;
  const Observed out = run(computed_and_sent(3, 1), machine);
  EXPECT_NEAR(out.result.makespan_ns, 3 * (kStepNs + 150) + 400, kExact);
}

TEST(Sender, HasAWayThroughTheStagingAreaThatCanDependOnTheTypeOfTheResult) {
  Machine machine = sending_machine();
  machine.interpreter.stage_gb_per_s = kTileBytes / 100;
  machine.gpu.matrix[static_cast<std::size_t>(DType::fp16)].stage_gb_per_s = kTileBytes / 300;
  machine.gpu.matrix[static_cast<std::size_t>(DType::fp8)].stage_gb_per_s = kTileBytes / 700;
  const Observed out = run(computed_and_sent(3, 1), machine);
  EXPECT_NEAR(out.result.makespan_ns, 3 * (kStepNs + 300) + 400, kExact);
}

TEST(Sender, SignalsWhatItStoredWhileTheWorkgroupComputes) {
  Machine machine = sending_machine();
  machine.gpu.release_ns = 30;
  machine.fabric.store_latency_ns = 20;
  Draft draft(2);
  const auto flag = draft.builder.flags("sent", 1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(kernel);
  draft.matmul(0);
  draft.builder.store(draft.c, Draft::tile(0), 1);
  draft.signal(flag, 0, 1);
  draft.matmul(1);
  const auto reader = draft.data_kernel("read", 1);
  draft.builder.workgroup(reader);
  draft.wait(flag, 0);
  for (int rank = 0; rank < 2; ++rank) {
    draft.builder.launch(rank, rank == 0 ? kernel : reader);
    draft.builder.host(rank, HostOpKind::device_synchronize);
  }
  const Observed out = run(draft.builder.finish(), machine);
  EXPECT_NEAR((out.seen.ops.at({1, 0, 0}).end_ns), kStepNs + 400 + 30 + 20, kExact);
  EXPECT_NEAR(out.result.ranks[0].kernels_ns, 2 * kStepNs, kExact);
}

Machine queueing_machine() {
  Machine machine = sending_machine();
  machine.gpu.loads_queue_behind_stores = true;
  return machine;
}

// Matmuls of eight steps, of which LDS holds one.
void fetch_in_eight_steps(Schedule& schedule) {
  schedule.kernels[0].tile.k /= 8;
  schedule.kernels[0].resources.lds_bytes = 1;
}

TEST(HeldUpLoads, AddTheTimeOfAStoreThatHasItsLinkForItself) {
  Machine machine = queueing_machine();
  machine.gpu.cu_remote_store_gb_per_s = kTileBytes / 500;  // less than the link would take
  Schedule schedule = computed_and_sent(2, 1);
  fetch_in_eight_steps(schedule);
  // A tenth of the loads get through.
  const Observed out = run(schedule, machine);
  EXPECT_NEAR((out.seen.ops.at({0, 0, 2}).length_ns()), kStepNs + 0.9 * 500 - kStepNs / 8, kExact);
}

TEST(HeldUpLoads, ComeWhenTheStoreHasLeftIfItTakesLonger) {
  Machine machine = queueing_machine();
  machine.gpu.cu_remote_store_gb_per_s = kTileBytes / (3 * kStepNs);
  Schedule schedule = computed_and_sent(2, 1);
  fetch_in_eight_steps(schedule);
  // When the matmul could end, a step's loads are missing but for an eighth and a tenth; another fifth of a
  // step's come until the store has left.
  const double missing = kStepNs * (0.9 - 1.0 / 8 - 0.2);
  EXPECT_NEAR((run(schedule, machine).seen.ops.at({0, 0, 2}).length_ns()), 3 * kStepNs + missing, kExact);
}

TEST(HeldUpLoads, ComeBesideAStoreThatTakesMuchLonger) {
  Machine machine = queueing_machine();
  machine.gpu.cu_remote_store_gb_per_s = kTileBytes / (100 * kStepNs);
  Schedule schedule = computed_and_sent(2, 1);
  fetch_in_eight_steps(schedule);
  // What is missing when the matmul could end comes at a tenth of its pace.
  const double missing = kStepNs * (0.9 - 1.0 / 8);
  EXPECT_NEAR((run(schedule, machine).seen.ops.at({0, 0, 2}).length_ns()), kStepNs + missing / 0.1, kExact);
}

TEST(HeldUpLoads, AreNoneOfAMatmulWhoseOperandsFitLds) {
  Machine machine = queueing_machine();
  machine.interpreter.matmul_op_ns = 300;
  machine.gpu.cu_remote_store_gb_per_s = kTileBytes / (100 * kStepNs);
  const Observed out = run(computed_and_sent(2, 1), machine);
  EXPECT_NEAR((out.seen.ops.at({0, 0, 2}).length_ns()), kStepNs + 300, kExact);
}

// A copy or an atomic of the computing waves holds up loads as a store of the sender does.
TEST(HeldUpLoads, ComeBehindCopiesAndAtomicsToo) {
  Machine machine = queueing_machine();
  machine.gpu.cu_remote_store_gb_per_s = kTileBytes / (3 * kStepNs);
  machine.gpu.cu_remote_atomic_gb_per_s = kTileBytes / (3 * kStepNs);
  for (const OpKind kind : {OpKind::copy, OpKind::atomic_add}) {
    Draft draft(2);
    const auto kernel = draft.gemm_kernel("gemm", 0);
    draft.builder.workgroup(kernel);
    if (kind == OpKind::copy) {
      draft.builder.copy(draft.c, Draft::tile(0), 1, draft.c, 0, 0, 0);
    } else {
      draft.builder.atomic_add(draft.c, Draft::tile(0), 1);
    }
    draft.matmul(1);
    draft.builder.store(draft.c, Draft::tile(1), 0);
    draft.builder.launch(0, kernel);
    draft.builder.host(0, HostOpKind::device_synchronize);
    Schedule schedule = draft.builder.finish();
    fetch_in_eight_steps(schedule);
    const double missing = kStepNs * (0.9 - 1.0 / 8 - 0.2);
    EXPECT_NEAR((run(schedule, machine).seen.ops.at({0, 0, 1}).length_ns()), 3 * kStepNs + missing, kExact)
        << static_cast<int>(kind);
  }
}

TEST(HeldUpLoads, OfStoresToMemoryAreThoseThatWaitWithThem) {
  Machine machine = queueing_machine();
  machine.gpu.cu_store_gb_per_s = kTileBytes / 500;
  Draft draft(1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(kernel);
  draft.matmul(0);
  draft.builder.store(draft.c, Draft::tile(0), 0);
  draft.matmul(1);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  Schedule schedule = draft.builder.finish();
  fetch_in_eight_steps(schedule);
  EXPECT_NEAR((run(schedule, machine).seen.ops.at({0, 0, 2}).length_ns()), kStepNs, kExact);
}

TEST(HeldUpLoads, AddTheTimeThatAStoreWaitsForItsLink) {
  // Two workgroups share the link: both stores take 800 instead of 400 ns, and the matmuls beside them lose
  // as much, unless their operands fit LDS and lie there already.
  Machine machine = queueing_machine();
  Draft draft(2);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  for (int w = 0; w < 2; ++w) {
    draft.builder.workgroup(kernel);
    draft.matmul(2 * w);
    draft.builder.store(draft.c, Draft::tile(2 * w), 1);
    draft.matmul(2 * w + 1);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  Schedule schedule = draft.builder.finish();
  EXPECT_NEAR(run(schedule, machine).result.makespan_ns, 2 * kStepNs, kExact);
  fetch_in_eight_steps(schedule);
  const double waited = 0.9 * 800 - kStepNs / 8;
  EXPECT_NEAR(run(schedule, machine).result.makespan_ns, 2 * kStepNs + waited, kExact);
  machine.gpu.loads_queue_behind_stores = false;
  EXPECT_NEAR(run(schedule, machine).result.makespan_ns, 2 * kStepNs, kExact);
}

TEST(ColdStart, DelaysTheFirstOperationsOfAKernel) {
  Machine machine = sending_machine();
  machine.interpreter.cold_start_ns = 70;
  EXPECT_NEAR(run(computed_and_sent(2, 1), machine).result.makespan_ns, 70 + 2 * kStepNs + 400, kExact);
}

// A matmul kernel and a kernel that copies take turns, in this run and from run to run.
TEST(ColdCode, DelaysKernelsThatFollowOtherCode) {
  Machine machine = sending_machine();
  const auto longer_ns = [&machine](int matmuls, int copies, bool warm) {
    Draft draft(1);
    for (int i = 0; i < matmuls; ++i) {
      draft.builder.workgroup(draft.gemm_kernel("gemm", 0));
      draft.matmul(i);
      draft.builder.launch(0, static_cast<std::int32_t>(i));
    }
    for (int i = 0; i < copies; ++i) {
      draft.builder.workgroup(draft.data_kernel("copy", 0));
      draft.builder.load(draft.c, Draft::tile(i), 0);
      draft.builder.launch(0, static_cast<std::int32_t>(matmuls + i));
    }
    draft.builder.host(0, HostOpKind::device_synchronize);
    const Schedule schedule = draft.builder.finish();
    SimulationOptions options;
    options.warm = warm;
    machine.interpreter.cold_code_ns = 0;
    const double without_ns = simulate(schedule, machine, options).makespan_ns;
    machine.interpreter.cold_code_ns = 500;
    return simulate(schedule, machine, options).makespan_ns - without_ns;
  };
  EXPECT_NEAR(longer_ns(1, 0, false), 0, kExact);
  EXPECT_NEAR(longer_ns(2, 0, false), 0, kExact);
  EXPECT_NEAR(longer_ns(0, 2, false), 0, kExact);
  EXPECT_NEAR(longer_ns(1, 1, false), 2 * 500, kExact);
  EXPECT_NEAR(longer_ns(2, 2, false), 2 * 500, kExact);
  EXPECT_NEAR(longer_ns(1, 1, true), 0, kExact);
}

TEST(MatmulSpread, KeepsTheMeanAndIsTheSameOnEveryRun) {
  Machine machine = hand::machine();
  machine.gpu.matmul_spread = 0.05;
  Draft draft(1, 8 * 50);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  for (int w = 0; w < 8; ++w) {
    draft.builder.workgroup(kernel);
    for (int t = 0; t < 50; ++t) draft.matmul(50 * w + t);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Schedule schedule = draft.builder.finish();
  const double first = simulate(schedule, machine).makespan_ns;
  EXPECT_EQ(first, simulate(schedule, machine).makespan_ns);
  EXPECT_GT(first, 50 * kStepNs);  // the slowest of eight
  EXPECT_LT(first, 50 * kStepNs * 1.03);
}

constexpr double kHugeCaches = 1e15;  // of which a run displaces nearly nothing

// Makespan of one matmul, whose operands of 2 tiles take far longer than it to come from memory.
double matmul_from_memory_ns(const Machine& machine, double written_before_bytes) {
  Draft draft(1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(kernel);
  draft.matmul(0);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  SimulationOptions options;
  options.written_before_bytes = written_before_bytes;
  return simulate(draft.builder.finish(), machine, options).makespan_ns;
}

TEST(WrittenBefore, CostsItsWayBackToMemory) {
  Machine machine = hand::machine();
  machine.gpu.hbm_gb_per_s = 1;
  machine.gpu.l2_bytes = kHugeCaches / machine.gpu.xcds;
  EXPECT_NEAR(matmul_from_memory_ns(machine, 0), 2 * kTileBytes, kExact);
  EXPECT_NEAR(matmul_from_memory_ns(machine, kHugeCaches), 2 * kTileBytes, kExact);  // none can be dirty
  machine.gpu.dirty_share = 1;
  EXPECT_NEAR(matmul_from_memory_ns(machine, kHugeCaches), 4 * kTileBytes, kExact);
  machine.gpu.hbm_write_gb_per_s = 0.5;  // of the one read
  EXPECT_NEAR(matmul_from_memory_ns(machine, kHugeCaches), 6 * kTileBytes, kExact);
  machine.gpu.dirty_share = 0.5;
  EXPECT_NEAR(matmul_from_memory_ns(machine, kHugeCaches), 4 * kTileBytes, kExact);
  EXPECT_NEAR(matmul_from_memory_ns(machine, kHugeCaches / 4), 3 * kTileBytes, kExact);  // so much, not more
}

// Every byte displaces one of the caches' by chance, so some of what is clean is displaced twice before all
// that is dirty.
TEST(WrittenBefore, IsDisplacedByChance) {
  Machine machine = hand::machine();
  machine.gpu.hbm_gb_per_s = 1;
  machine.gpu.dirty_share = 1;
  for (const double caches_of_reads : {0.25, 1.0, 4.0}) {
    machine.gpu.l2_bytes = caches_of_reads * 2 * kTileBytes / machine.gpu.xcds;
    const double displaced = caches_of_reads * (1 - std::exp(-1 / caches_of_reads));
    EXPECT_NEAR(matmul_from_memory_ns(machine, 1e9), 2 * kTileBytes * (1 + displaced), 2 * kTileBytes * 1e-3);
  }
}

// `workgroups` matmuls with 3 stages of operands on their way, each `stage_latency_ns`, in caches that are
// dirty.
hand::Recorder matmuls_in_dirty_caches(int workgroups, double stage_latency_ns, double dirty_share) {
  Machine machine = hand::machine();
  machine.gpu.hbm_gb_per_s = 1000;  // far more than is read
  machine.gpu.stage_latency_ns = stage_latency_ns;
  machine.gpu.dirty_share = dirty_share;
  machine.gpu.l2_bytes = kHugeCaches / machine.gpu.xcds;
  Draft draft(1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  for (int w = 0; w < workgroups; ++w) {
    draft.builder.workgroup(kernel);
    draft.matmul(w);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  SimulationOptions options;
  options.written_before_bytes = kHugeCaches;
  hand::Recorder seen;
  options.observer = &seen;
  simulate(draft.builder.finish(), machine, options);
  return seen;
}

TEST(WrittenBefore, HoldsUpOperandsThatArriveInNoTimeToSpare) {
  for (const int workgroups : {1, 8}) {
    const double written_ns = (workgroups + 1) * kTileBytes / 1000;  // as much as is read; B is everybody's
    auto clean = matmuls_in_dirty_caches(workgroups, 6 * kStepNs, 0);
    auto dirty = matmuls_in_dirty_caches(workgroups, 6 * kStepNs, 1);
    auto spare = matmuls_in_dirty_caches(workgroups, kStepNs, 1);
    for (int w = 0; w < workgroups; ++w) {
      const std::tuple op{0U, static_cast<std::uint32_t>(w), 0U};
      EXPECT_NEAR(clean.ops[op].length_ns(), 2 * kStepNs, kExact);
      EXPECT_NEAR(dirty.ops[op].length_ns(), 2 * kStepNs + written_ns, kExact);  // nobody is luckier
      EXPECT_NEAR(spare.ops[op].length_ns(), kStepNs, kExact);
    }
  }
}

}  // namespace
}  // namespace tritax
