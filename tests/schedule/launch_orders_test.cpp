// In which orders of independent streams a schedule is sound.
#include "tests/schedule/places.hpp"

namespace tritax {
namespace {

// The case of mirage-project/mirage issue 761: "schedulers" hand tasks to "workers" and wait until all are
// done, twice. A worker takes all registers of a compute unit, as on NVIDIA's B200.
Schedule workers_and_schedulers(int workers, int schedulers, bool workers_first) {
  ScheduleBuilder builder("workers and schedulers", 1);
  const std::int16_t task = builder.flags("task", workers);
  const std::int16_t done = builder.flags("done", workers);
  const auto add = [&](const std::string& name, Resources resources) {
    Kernel kernel;
    kernel.name = name;
    kernel.resources = resources;
    return builder.kernel(std::move(kernel));
  };
  const auto worker = add("workers", {256, 255, 213 * 1024});
  for (int w = 0; w < workers; ++w) {
    builder.workgroup(worker);
    for (int round = 1; round <= 2; ++round) {
      builder.wait(task, w, round, Scope::gpu, kPlain);
      builder.signal(done, w, 1, 0, Scope::gpu, kPlain);
    }
  }
  const auto scheduler = add("schedulers", {32, 255, 0});
  for (int s = 0; s < schedulers; ++s) {
    builder.workgroup(scheduler);
    for (int round = 1; round <= 2; ++round) {
      for (int w = s; w < workers; w += schedulers) builder.signal(task, w, 1, 0, Scope::gpu, kPlain);
      for (int w = 0; w < workers; ++w) builder.wait(done, w, round, Scope::gpu, kPlain);
    }
  }
  builder.launch(0, workers_first ? worker : scheduler, 0);
  builder.launch(0, workers_first ? scheduler : worker, 1);
  return builder.finish();
}

Machine b200() {
  Machine machine;
  machine.name = "b200";
  machine.gpu.name = "B200";
  machine.gpu.xcds = 1;
  machine.gpu.cus_per_xcd = 148;
  machine.gpu.simds_per_cu = 4;
  machine.gpu.waves_per_simd = 16;
  machine.gpu.lanes_per_wave = 32;
  machine.gpu.registers_per_cu = 65536;
  machine.gpu.registers_per_thread_max = 255;
  machine.gpu.lds_bytes_per_cu = 228 * 1024;
  machine.gpu.lds_bytes_per_workgroup_max = 227 * 1024;
  return machine;
}

TEST(LaunchOrders, WhatDeadlocksInOneOfThemIsRefusedWhicheverLaunchStandsFirst) {
  for (const bool workers_first : {true, false}) {
    const auto findings = check_schedule_on(workers_and_schedulers(128, 80, workers_first), b200());
    ASSERT_EQ(findings.size(), 1U) << text_of(findings);
    EXPECT_EQ(findings[0].kind, Finding::Kind::resources);
    const std::string& message = findings[0].message;
    EXPECT_NE(message.find("kernel 'workers' rank 0 workgroup 68"), std::string::npos) << message;
    EXPECT_NE(message.find("so it is if 'schedulers' starts before 'workers', as independent streams may"),
              std::string::npos)
        << message;
  }
}

TEST(LaunchOrders, WhatFindsRoomInEachIsSoundInEvery) {
  LaunchOrders orders = LaunchOrders::one;
  EXPECT_EQ(text_of(check_schedule_on(workers_and_schedulers(68, 80, true), b200(), 20, &orders)), "");
  EXPECT_EQ(orders, LaunchOrders::every);
}

TEST(LaunchOrders, AreOneWhereNoRankHasTwoStreams) {
  LaunchOrders orders = LaunchOrders::some;
  EXPECT_EQ(text_of(check_schedule_on(bulk_synchronous(), small_machine(), 20, &orders)), "");
  EXPECT_EQ(orders, LaunchOrders::one);
}

TEST(LaunchOrders, AreTriedInEveryPermutationThatAllRanksShareUpToFiveStreams) {
  for (const int count : {2, 5, 6}) {
    LaunchOrders orders = LaunchOrders::one;
    EXPECT_EQ(text_of(check_schedule_on(twins(count), small_machine(), 20, &orders)), "") << count;
    EXPECT_EQ(orders, count > 5 ? LaunchOrders::some : LaunchOrders::alike) << count;
  }
}

TEST(LaunchOrders, AnEventOrdersTwoKernelsForGood) {
  Places s(1);
  s.signalling(s.add("signals", 0), 0, 0, kUnits);
  s.builder.record_event(0, 0, 10);
  s.builder.wait_event(0, 0, 11);
  s.spinning(s.add("spins", 0), kUnits, 0, kUnits);
  s.expect_sound();
}

}  // namespace
}  // namespace tritax
