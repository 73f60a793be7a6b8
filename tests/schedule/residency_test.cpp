#include <gtest/gtest.h>

#include "model/schedule/check.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

// Two GPUs of two dies with four compute units each; a compute unit holds 16 waves, 2048 registers a lane and
// 64 KiB.
Machine two_dies() {
  Machine machine;
  machine.name = "small-2";
  machine.gpus_per_node = 2;
  machine.gpu.name = "Small";
  machine.gpu.xcds = 2;
  machine.gpu.cus_per_xcd = 4;
  machine.gpu.simds_per_cu = 4;
  machine.gpu.waves_per_simd = 4;
  machine.gpu.lanes_per_wave = 64;
  machine.gpu.registers_per_cu = 4 * 512 * 64;
  machine.gpu.registers_per_thread_max = 512;
  machine.gpu.lds_bytes_per_cu = 65536;
  machine.gpu.lds_bytes_per_workgroup_max = 65536;
  return machine;
}

void expect_finding(const Schedule& schedule, const std::string& where, const std::string& message) {
  EXPECT_TRUE(check_schedule(schedule).empty());
  const auto findings = check_schedule_on(schedule, two_dies());
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, Finding::Kind::resources);
  EXPECT_EQ(findings[0].where, where);
  EXPECT_NE(findings[0].message.find(message), std::string::npos) << findings[0].message;
}

void expect_fits(const Schedule& schedule) {
  EXPECT_TRUE(check_schedule(schedule).empty());
  for (const Finding& finding : check_schedule_on(schedule, two_dies())) {
    ADD_FAILURE() << finding.where << ": " << finding.message;
  }
}

// A kernel of `count` empty workgroups, each alone on its compute unit.
std::int32_t add_kernel(SmallSchedule& s, const std::string& name, Placement placement, int count) {
  Kernel kernel;
  kernel.name = name;
  kernel.placement = placement;
  kernel.resources = {256, 64, 65536};
  const auto index = s.builder.kernel(std::move(kernel));
  for (int i = 0; i < count; ++i) {
    s.builder.workgroup(index);
    s.builder.barrier();
  }
  return index;
}

TEST(CheckResources, BuffersThatTheMemoryOfAGpuDoesNotHoldAreRefused) {
  SmallSchedule s(1);  // three matrices of 512×512 in fp16 and 16 counters
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.builder.launch(0, k);
  const Schedule schedule = s.builder.finish();
  Machine machine = two_dies();
  machine.gpu.hbm_bytes = 3 * 512 * 512 * 2 + 16 * 4;
  EXPECT_TRUE(check_schedule_on(schedule, machine).empty());
  machine.gpu.hbm_bytes -= 1;
  const auto findings = check_schedule_on(schedule, machine);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, Finding::Kind::resources);
  EXPECT_NE(findings[0].message.find("take 0.001573 GB on every GPU; Small has 0.001573 GB"),
            std::string::npos)
      << findings[0].message;
}

Schedule one_kernel(Placement placement, int count, Resources resources) {
  SmallSchedule s(1);
  s.builder.launch(0, add_kernel(s, "k", placement, count));
  Schedule schedule = s.builder.finish();
  schedule.kernels[0].resources = resources;
  return schedule;
}

TEST(CheckResources, MoreRanksThanGpusAreRefused) {
  SmallSchedule s(3);
  s.builder.launch(0, add_kernel(s, "k", Placement::dispatch, 1));
  expect_finding(s.builder.finish(), "schedule", "has 3 ranks; machine 'small-2' has 2 GPUs");
}

TEST(CheckResources, AWorkgroupThatNoComputeUnitHoldsIsRefused) {
  expect_fits(one_kernel(Placement::dispatch, 1, {1024, 128, 65536}));
  expect_finding(one_kernel(Placement::dispatch, 1, {1025, 1, 0}), "kernel 'k' rank 0", "1025 threads");
  expect_finding(one_kernel(Placement::dispatch, 1, {64, 513, 0}), "kernel 'k' rank 0",
                 "513 registers per thread");
  expect_finding(one_kernel(Placement::dispatch, 1, {1024, 129, 0}), "kernel 'k' rank 0", "132096 registers");
  expect_finding(one_kernel(Placement::dispatch, 1, {64, 1, 65537}), "kernel 'k' rank 0",
                 "65537 bytes of LDS");
}

TEST(CheckResources, ComputeUnitsThatTheGpuLacksAreRefused) {
  Schedule schedule = one_kernel(Placement::dispatch, 1, {});
  schedule.kernels[0].cu_end = 9;
  expect_finding(schedule, "kernel 'k' rank 0", "compute units [0, 9); Small has 8");
}

TEST(CheckResidency, APersistentKernelMustFitAtOnce) {
  expect_fits(one_kernel(Placement::persistent, 8, {256, 64, 65536}));
  expect_fits(one_kernel(Placement::dispatch, 9, {256, 64, 65536}));
  expect_finding(one_kernel(Placement::persistent, 9, {256, 64, 65536}), "kernel 'k' rank 0",
                 "persistent with 9 workgroups, but only 8 of them are resident at once");
}

TEST(CheckResidency, ThreadsRegistersAndLdsLimitWhatIsResident) {
  expect_fits(one_kernel(Placement::persistent, 32, {256, 64, 0}));  // 4 waves of 16
  expect_finding(one_kernel(Placement::persistent, 33, {256, 64, 0}), "kernel 'k' rank 0", "only 32 of them");
  expect_finding(one_kernel(Placement::persistent, 33, {64, 512, 0}), "kernel 'k' rank 0", "only 32 of them");
  expect_finding(one_kernel(Placement::persistent, 17, {64, 1, 32768}), "kernel 'k' rank 0",
                 "only 16 of them");
}

TEST(CheckResidency, AReservedRangeOfComputeUnitsIsAllAKernelCanUse) {
  Schedule schedule = one_kernel(Placement::persistent, 3, {256, 64, 65536});
  schedule.kernels[0].cu_begin = 2;
  schedule.kernels[0].cu_end = 5;  // two of the first die, one of the second
  expect_fits(schedule);
  schedule.kernels[0].cu_end = 4;
  expect_finding(schedule, "kernel 'k' rank 0", "only 2 of them");
}

// "producer" signals one flag a workgroup, each workgroup of "consumer" waits for one.
Schedule two_kernels(Placement first, int producers, Placement second, int consumers,
                     bool consumer_launched_first) {
  SmallSchedule s(1);
  const auto producer = add_kernel(s, "producer", first, 0);
  for (int i = 0; i < producers; ++i) {
    s.builder.workgroup(producer);
    s.signal(i, 0);
  }
  const auto consumer = add_kernel(s, "consumer", second, 0);
  for (int i = 0; i < consumers; ++i) {
    s.builder.workgroup(consumer);
    s.wait(i);
  }
  s.builder.launch(0, consumer_launched_first ? consumer : producer, 0);
  s.builder.launch(0, consumer_launched_first ? producer : consumer, 1);
  return s.builder.finish();
}

TEST(CheckResidency, PersistentKernelsThatSpinOnEachOtherMustFitTogether) {
  expect_fits(two_kernels(Placement::persistent, 6, Placement::persistent, 2, false));
  expect_finding(
      two_kernels(Placement::persistent, 6, Placement::persistent, 4, false), "kernel 'consumer' rank 0",
      "has 4 workgroups that must be resident together with 6 workgroups of kernel 'producer' rank 0");
}

TEST(CheckResidency, PersistentKernelsOfOneStreamNeedNotFitTogether) {
  Schedule schedule = two_kernels(Placement::persistent, 6, Placement::persistent, 4, false);
  schedule.host[0][1].stream = 0;
  expect_fits(schedule);
}

TEST(CheckResidency, KernelsThatDoNotSpinOnEachOtherNeedNotFitTogether) {
  SmallSchedule s(1);
  s.builder.launch(0, add_kernel(s, "one", Placement::persistent, 8), 0);
  s.builder.launch(0, add_kernel(s, "two", Placement::persistent, 8), 1);
  expect_fits(s.builder.finish());
}

TEST(CheckResidency, AGridNeedsAPlaceOnEachDieBesideThePersistentKernelThatSpinsOnIt) {
  expect_fits(two_kernels(Placement::dispatch, 16, Placement::persistent, 6, true));
  expect_finding(
      two_kernels(Placement::dispatch, 16, Placement::persistent, 8, true),
      "kernel 'consumer' rank 0 workgroup 0 operation 0 (wait)",
      "waits for ready[0] of rank 0 >= 1, but kernel 'producer' rank 0 workgroup 0, on which that "
      "depends, may never get a place on Small: 8 workgroups of kernel 'consumer' rank 0 can take");
}

TEST(CheckResidency, ASpinningGridMayOnlyFillTheMachineBehindItsProducer) {
  Schedule ordered = two_kernels(Placement::dispatch, 16, Placement::dispatch, 16, false);
  for (HostOp& op : ordered.host[0]) op.stream = 0;
  expect_fits(ordered);
  // Independent streams promise no order.
  expect_finding(two_kernels(Placement::dispatch, 16, Placement::dispatch, 16, false),
                 "kernel 'consumer' rank 0 workgroup 0 operation 0 (wait)",
                 "so it is if 'consumer' starts before 'producer'");
  expect_finding(two_kernels(Placement::dispatch, 16, Placement::dispatch, 16, true),
                 "kernel 'consumer' rank 0 workgroup 0 operation 0 (wait)", "may never get a place");
}

// Workgroup i waits for the flag of workgroup i + 1 (or i - 1), in one grid.
Schedule chain(int count, bool on_later) {
  SmallSchedule s(1);
  const auto flags = s.builder.flags("chain", count + 1);
  const auto k = add_kernel(s, "k", Placement::dispatch, 0);
  for (int i = 0; i < count; ++i) {
    s.builder.workgroup(k);
    const int other = on_later ? i + 1 : i - 1;
    if (other >= 0 && other < count) {
      s.builder.wait(flags, other, 1, Scope::gpu, kPlain);
    }
    s.builder.signal(flags, i, 1, 0, Scope::gpu, kPlain);
  }
  s.builder.launch(0, k);
  return s.builder.finish();
}

TEST(CheckResidency, AGridMaySpinOnWorkgroupsThatWereDispatchedBefore) {
  expect_fits(chain(100, false));
  expect_fits(chain(8, true));
}

TEST(CheckResidency, AGridMayNotSpinOnWorkgroupsThatGetNoPlace) {
  expect_finding(
      chain(9, true), "kernel 'k' rank 0 workgroup 7 operation 0 (wait)",
      "waits for chain[8] of rank 0 >= 1, but kernel 'k' rank 0 workgroup 8, on which that depends, "
      "may never get a place on Small: 8 workgroups of kernel 'k' rank 0 can take");
}

TEST(CheckResidency, SpinningByWayOfAnotherRankCountsToo) {
  SmallSchedule s(2);
  const auto here = add_kernel(s, "here", Placement::persistent, 0);
  for (int i = 0; i < 8; ++i) {
    s.builder.workgroup(here);
    s.wait(1, 1, Scope::system);
  }
  const auto source = add_kernel(s, "source", Placement::dispatch, 0);
  s.builder.workgroup(source);
  s.signal(0, 1, 1, Scope::system);
  Kernel relay;
  relay.name = "relay";
  relay.rank = 1;
  const auto there = s.builder.kernel(relay);
  s.builder.workgroup(there);
  s.wait(0, 1, Scope::system);
  s.signal(1, 0, 1, Scope::system);
  s.builder.launch(0, here, 0);
  s.builder.launch(0, source, 1);
  s.builder.launch(1, there);
  expect_finding(s.builder.finish(), "kernel 'relay' rank 1 workgroup 0 operation 0 (wait)",
                 "kernel 'source' rank 0 workgroup 0, on which that depends, may never get a place");
}

}  // namespace
}  // namespace tritax
