// Schedules that are about places on compute units, and a machine on which these are few.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {

inline constexpr int kUnits = 8;

// Two GPUs of two dies with four compute units each, of which each holds one workgroup of 64 KiB.
inline Machine small_machine() {
  Machine machine;
  machine.name = "small-2";
  machine.gpus_per_node = 2;
  machine.gpu.name = "Small";
  machine.gpu.xcds = 2;
  machine.gpu.cus_per_xcd = kUnits / 2;
  machine.gpu.simds_per_cu = 4;
  machine.gpu.waves_per_simd = 4;
  machine.gpu.lanes_per_wave = 64;
  machine.gpu.registers_per_cu = 4 * 512 * 64;
  machine.gpu.registers_per_thread_max = 512;
  machine.gpu.lds_bytes_per_cu = 65536;
  machine.gpu.lds_bytes_per_workgroup_max = 65536;
  return machine;
}

struct Places : SmallSchedule {
  using SmallSchedule::SmallSchedule;

  // Launched on a stream of its own unless told which.
  std::int32_t add(const std::string& name, int rank, int stream = -1, int lds_bytes = 65536,
                   Placement placement = Placement::dispatch) {
    Kernel kernel;
    kernel.name = name;
    kernel.rank = rank;
    kernel.placement = placement;
    kernel.resources = {256, 16, lds_bytes};
    const std::int32_t index = builder.kernel(std::move(kernel));
    builder.launch(rank, index, stream < 0 ? 10 + index : stream);
    return index;
  }

  void spinning(std::int32_t kernel, int count, int flag, int value = 1) {
    for (int i = 0; i < count; ++i) {
      builder.workgroup(kernel);
      wait(flag, value, Scope::system);
    }
  }

  void signalling(std::int32_t kernel, int flag, int rank, int count = 1) {
    for (int i = 0; i < count; ++i) {
      builder.workgroup(kernel);
      signal(flag, rank, 1, Scope::system);
    }
  }

  void expect_sound() {
    const Schedule schedule = builder.finish();
    EXPECT_EQ(text_of(check_schedule(schedule)), "");
    EXPECT_EQ(text_of(check_schedule_on(schedule, small_machine())), "");
  }

  void expect_refused(const std::string& where, const std::string& message) {
    const Schedule schedule = builder.finish();
    EXPECT_EQ(text_of(check_schedule(schedule)), "");
    const auto findings = check_schedule_on(schedule, small_machine());
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings[0].kind, Finding::Kind::resources);
    EXPECT_EQ(findings[0].where, where);
    EXPECT_NE(findings[0].message.find(message), std::string::npos) << findings[0].message;
  }
};

// `count` kernels on streams of their own; each fills both GPUs until its twin on the other has signalled.
inline Schedule twins(int count) {
  Places s(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < count; ++i) {
      const auto kernel = s.add("twin", rank);
      for (int w = 0; w < kUnits; ++w) {
        s.builder.workgroup(kernel);
        s.signal(i, 1 - rank, 1, Scope::system);
        s.wait(i, kUnits, Scope::system);
      }
    }
  }
  return s.builder.finish();
}

}  // namespace tritax
