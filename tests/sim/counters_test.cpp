// Counters of clock and caches: the observer gets those of the result, and observing changes nothing.
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "hand_machine.hpp"
#include "model/schedule/builder.hpp"
#include "sim/simulate.hpp"
#include "sim/timeline.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kTileBytes;

struct Counted {
  SimulationResult result;
  Timeline timeline;
  Counters counters;
};

Counted counted(const Schedule& schedule, const Machine& machine, bool asked = true) {
  Counted out;
  TimelineRecorder recorder(schedule);
  SimulationOptions options;
  options.observer = &recorder;
  options.link_counters = asked;
  out.result = simulate(schedule, machine, options);
  out.timeline = recorder.take();
  out.counters = recorder.take_counters();
  return out;
}

ReadBytes sum_of_reads(const std::vector<CacheRead>& reads) {
  ReadBytes sum;
  for (const CacheRead& read : reads) {
    sum.l2 += static_cast<double>(read.l2_bytes);
    sum.llc += static_cast<double>(read.llc_bytes);
    sum.hbm += static_cast<double>(read.hbm_bytes);
  }
  return sum;
}

// A tile is loaded twice at 8 GB/s.
TEST(Counters, OfATileThatIsReadTwiceAreItsBytesFromMemoryAndThenFromL2) {
  Machine machine = hand::machine();
  machine.gpu.cu_load_gb_per_s = 8;
  Draft draft(1);
  const auto kernel = draft.data_kernel("twice", 0);
  draft.builder.workgroup(kernel);
  draft.builder.load(draft.a, Draft::tile(0), 0);
  draft.builder.load(draft.a, Draft::tile(0), 0);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Counted out = counted(draft.builder.finish(), machine);
  ASSERT_EQ(out.counters.reads.size(), 2u);
  EXPECT_EQ(out.counters.reads[0].hbm_bytes, kTileBytes);
  EXPECT_EQ(out.counters.reads[0].l2_bytes, 0);
  EXPECT_EQ(out.counters.reads[1].l2_bytes, kTileBytes);
  EXPECT_EQ(out.counters.reads[1].hbm_bytes, 0);
  EXPECT_TRUE(out.counters.clocks.empty());  // nothing is multiplied

  // 1024 ns each: as many steps, half of them from memory.
  const ReadRates rates = read_rates(out.timeline, out.counters, 1, 2048);
  ASSERT_EQ(rates.of_gpu[0].size(), 2048u);
  for (const std::size_t step : {0, 1023, 1024, 2047}) {
    EXPECT_NEAR(rates.of_gpu[0][step].hbm, step < 1024 ? 8 : 0, 1e-6) << step;
    EXPECT_NEAR(rates.of_gpu[0][step].l2, step < 1024 ? 0 : 8, 1e-6) << step;
  }
}

Schedule multiplies_on(std::int32_t workgroups) {
  Draft draft(1);
  const auto gemm = draft.gemm_kernel("gemm", 0);
  for (std::int32_t w = 0; w < workgroups; ++w) {
    draft.builder.workgroup(gemm);
    for (std::int32_t t = 0; t < 2; ++t) draft.matmul(w * 2 + t);
  }
  draft.builder.launch(0, gemm);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return draft.builder.finish();
}

TEST(Counters, OfAClockThatStaysAreOneSample) {
  const Counted out = counted(multiplies_on(8), hand::machine());  // 1 GHz, idle or busy
  ASSERT_EQ(out.counters.clocks.size(), 1u);
  EXPECT_EQ(out.counters.clocks[0].time_ns, 0);
  EXPECT_EQ(out.counters.clocks[0].ghz, 1);
}

// All matrix cores leave each other 1 GHz of 2.
TEST(Counters, OfAClockThatFollowsTheDrawEndAtThatOfTheResult) {
  Machine machine = hand::machine();
  machine.gpu.boost_clock_ghz = 2;
  machine.gpu.power_limit_w = 1;
  machine.gpu.operand_pj_per_byte = 1e-9;
  const Counted out = counted(multiplies_on(8), machine);
  ASSERT_FALSE(out.counters.clocks.empty());
  EXPECT_EQ(out.counters.clocks.back().ghz, out.result.ranks[0].matrix_clock_ghz);
  EXPECT_NEAR(out.counters.clocks.back().ghz, 1, 0.01);
  for (std::size_t i = 1; i < out.counters.clocks.size(); ++i) {
    EXPECT_LT(out.counters.clocks[i].ghz, out.counters.clocks[i - 1].ghz);
    EXPECT_GT(out.counters.clocks[i].time_ns, out.counters.clocks[i - 1].time_ns);
  }
}

// Sums of what is told are the traffic of the result, and telling changes nothing of that.
void expect_sums_to_be_those_of_the_result(const Schedule& schedule, const Machine& machine) {
  const Counted out = counted(schedule, machine);
  CacheTraffic traffic;
  for (const CacheRow& row : out.result.caches) traffic += row.traffic;
  const ReadBytes sum = sum_of_reads(out.counters.reads);
  constexpr double kOfFloats = 1e-6;
  EXPECT_GT(sum.hbm, 0);
  EXPECT_NEAR(sum.l2, traffic.l2_hit_bytes, kOfFloats * traffic.asked_bytes);
  EXPECT_NEAR(sum.llc, traffic.llc_hit_bytes, kOfFloats * traffic.asked_bytes);
  EXPECT_NEAR(sum.hbm, traffic.hbm_read_bytes, kOfFloats * traffic.asked_bytes);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(out.result.makespan_ns),
            std::bit_cast<std::uint64_t>(simulate(schedule, machine).makespan_ns));
}

TEST(Counters, AddUpToTheTrafficOfTheResultAndChangeNothing) {
  for (const char* name : {"mi300x-8", "h200-8"}) {
    const Machine machine = find_machine(name);
    const GemmAllScatter workload{1024, 2048, 512, DType::fp16, 4};
    const GemmKnobs knobs = default_gemm_knobs(machine, workload.dtype);
    for (const char* pattern : {"bulk-synchronous", "fused-sequential"}) {
      SCOPED_TRACE(std::string(name) + " " + pattern);
      expect_sums_to_be_those_of_the_result(build(pattern, workload, machine, knobs), machine);
    }
  }
}

TEST(Counters, AddUpForAttentionToo) {
  constexpr std::int32_t kTokens = 64, kDepth = 16;
  ScheduleBuilder builder("attention", 1);
  const auto queries = builder.buffer({"Q", DType::fp16, kTokens, kDepth, 16, kDepth});
  const auto keys = builder.buffer({"K", DType::fp16, kTokens, kDepth, 16, kDepth});
  const auto values = builder.buffer({"V", DType::fp16, kTokens, kDepth, 16, kDepth});
  const auto output = builder.buffer({"O", DType::fp16, kTokens, kDepth, 16, kDepth});
  Kernel attend;
  attend.name = "attend";
  attend.tile = {64, 16, kDepth, 4, Pipeline::overlapped};
  const auto kernel = builder.kernel(attend);
  for (std::int32_t row = 0; row < kTokens; row += 16) {
    builder.workgroup(kernel);
    const Rect tile{row, 0, 16, kDepth};
    for (std::int32_t key = 0; key < kTokens; key += 32) {
      builder.attend(queries, tile, keys, values, 0, key, key + 32, {0, 1});
    }
    builder.store(output, tile, 0);
  }
  builder.launch(0, kernel);
  builder.host(0, HostOpKind::device_synchronize);
  const Schedule schedule = builder.finish();
  for (const char* name : {"mi300x-8", "h200-8"}) {
    SCOPED_TRACE(name);
    expect_sums_to_be_those_of_the_result(schedule, find_machine(name));
  }
}

// GPU 0 pulls a tile from GPU 1, whose memory it comes from, at 10 GB/s.
TEST(Counters, OfACopyEngineAreThoseOfTheGpuThatItReads) {
  Machine machine = hand::machine(2);
  machine.copy_engine = {1, 10, 500};
  Draft draft(2);
  draft.builder.host_copy(0, 0, draft.c, Draft::tile(0), 0, draft.a, 0, 0, 1);
  const Schedule schedule = draft.builder.finish();
  expect_sums_to_be_those_of_the_result(schedule, machine);
  const Counted out = counted(schedule, machine);
  ASSERT_EQ(out.counters.reads.size(), 1u);
  EXPECT_TRUE(out.counters.reads[0].by_engine);
  EXPECT_EQ(out.counters.reads[0].rank, 1);
  EXPECT_EQ(out.counters.reads[0].hbm_bytes, kTileBytes);
  const ReadRates rates = read_rates(out.timeline, out.counters, 2, 1);
  const auto area_of = [&](std::size_t rank) {
    return rates.of_gpu[rank][0].hbm * static_cast<double>(rates.step_ns);
  };
  EXPECT_EQ(area_of(0), 0);
  EXPECT_NEAR(area_of(1), kTileBytes, 1e-6);
}

TEST(Counters, AreSilentUnlessAskedFor) {
  const Counted out = counted(multiplies_on(8), hand::machine(), false);
  EXPECT_TRUE(out.counters.clocks.empty());
  EXPECT_TRUE(out.counters.reads.empty());
}

}  // namespace
}  // namespace tritax
