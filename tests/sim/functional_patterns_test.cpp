// The patterns, simulated on small matrices: the result is Eigen's product on every rank, and a missing wait
// or signal does not go unseen.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/check.hpp"
#include "model/timeline/perfetto.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"
#include "sim/timeline.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

// The rounding of fp32 elements leaves 6e-8; a lost K step, column or tile is larger than 1e-2.
constexpr double kTolerance = 1e-6;

// An MI300X with 2 dies of 4 compute units: small enough that workgroups take turns and several waves run.
Machine small_machine() {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;
  machine.gpu.cus_per_xcd = 4;
  return machine;
}

GemmKnobs small_knobs() {
  GemmKnobs knobs;
  knobs.tile_m = 32;
  knobs.tile_n = 16;
  knobs.tile_k = 16;
  knobs.waves = 4;
  knobs.group_m = 2;
  return knobs;
}

struct Shape {
  std::int64_t m, n, k;
};
// Whole tiles, one ragged size each, everything ragged, and less than one tile a rank.
constexpr Shape kShapes[] = {{64, 128, 32}, {70, 128, 32}, {64, 131, 32},
                             {64, 128, 37}, {45, 83, 29},  {5, 9, 3}};

void expect_exact(const Schedule& schedule, const std::string& what) {
  const FunctionalResult result = execute_functionally(schedule, small_machine(), 7);
  EXPECT_TRUE(result.stale_reads.empty()) << what << ": " << result.stale_reads.front();
  EXPECT_EQ(result.error_of_rank.size(), static_cast<std::size_t>(schedule.ranks)) << what;
  EXPECT_LT(result.max_relative_error, kTolerance) << what;
}

class EveryPattern : public testing::TestWithParam<std::string> {
 protected:
  const Pattern& pattern() const { return find_pattern(gemm_all_scatter(), GetParam(), "test"); }
};

std::vector<std::string> pattern_names() {
  std::vector<std::string> names;
  for (const Pattern& pattern : gemm_all_scatter().patterns) names.emplace_back(pattern.name);
  return names;
}

TEST_P(EveryPattern, EqualsEigensProductOnEveryRankForWholeAndRaggedShapes) {
  for (const Shape& shape : kShapes) {
    for (const int gpus : {1, 2, 4, 8}) {
      const GemmAllScatter workload{shape.m, shape.n, shape.k, DType::fp16, gpus};
      expect_exact(build(pattern(), workload, small_machine(), small_knobs()),
                   std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k) +
                       " on " + std::to_string(gpus));
    }
  }
}

TEST_P(EveryPattern, EqualsEigensProductWithEveryKnobTurned) {
  const GemmAllScatter workload{70, 131, 37, DType::bf16, 4};
  const auto expect_exact_with = [&](const char* what, auto turn) {
    GemmKnobs knobs = small_knobs();
    turn(knobs);
    expect_exact(build(pattern(), workload, small_machine(), knobs), what);
  };
  expect_exact_with("graph launch", [](GemmKnobs& k) { k.launch = LaunchMode::graph; });
  expect_exact_with("rotated peers", [](GemmKnobs& k) { k.peer_order = PeerOrder::rotated; });
  expect_exact_with("staggered peers", [](GemmKnobs& k) { k.peer_order = PeerOrder::staggered; });
  expect_exact_with("no XCD remap", [](GemmKnobs& k) { k.xcd_remap = false; });
  expect_exact_with("exchange", [](GemmKnobs& k) { k.lock = LockProtocol::exchange; });
  expect_exact_with("compare-and-swap", [](GemmKnobs& k) { k.lock = LockProtocol::compare_and_swap; });
  expect_exact_with("small communication tiles", [](GemmKnobs& k) { k.comm_tile_m = k.comm_tile_n = 16; });
  expect_exact_with("large communication tiles", [](GemmKnobs& k) { k.comm_tile_m = k.comm_tile_n = 48; });
  expect_exact_with("CU split 3:5", [](GemmKnobs& k) { k.gemm_cus = 3, k.comm_cus = 5; });
  expect_exact_with("overlapped pipeline", [](GemmKnobs& k) { k.pipeline = Pipeline::overlapped; });
  expect_exact_with("no host barriers", [](GemmKnobs& k) { k.host_barriers = false; });
}

TEST(Library, EqualsEigensProductWhenItSplitsK) {
  Machine machine = small_machine();
  machine.host.kernel_gap_ns = 0;
  for (const int gpus : {1, 2, 3}) {
    for (const std::int64_t k : {1024, 1000, 4097}) {
      const GemmAllScatter workload{45, 83, k, DType::fp16, gpus};
      const Schedule schedule = build("library", workload, machine, {});
      const bool split = std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                                     [](const Kernel& kernel) { return kernel.name == "library_add_parts"; });
      EXPECT_TRUE(split) << k << " on " << gpus;
      expect_exact(schedule, std::to_string(k) + " on " + std::to_string(gpus));
    }
  }
}

RC_GTEST_PROP(EveryPatternWithAnyShapeAndKnobs, EqualsEigensProduct, ()) {
  const Machine machine = small_machine();
  const GemmAllScatter workload{*rc::gen::inRange(1, 90), *rc::gen::inRange(8, 150), *rc::gen::inRange(1, 60),
                                *rc::gen::element(DType::fp16, DType::bf16, DType::fp8),
                                *rc::gen::inRange(1, 9)};
  GemmKnobs knobs;
  knobs.tile_m = 16 * *rc::gen::inRange(1, 4);
  knobs.tile_n = 16 * *rc::gen::inRange(1, 4);
  knobs.tile_k = 16;
  knobs.waves = 4;
  knobs.comm_tile_m = 16 * *rc::gen::inRange(0, 4);
  knobs.comm_tile_n = 16 * *rc::gen::inRange(0, 4);
  knobs.group_m = *rc::gen::inRange(1, 4);
  knobs.gemm_cus = *rc::gen::inRange(1, 8);
  knobs.comm_cus = 8 - knobs.gemm_cus;
  knobs.xcd_remap = *rc::gen::arbitrary<bool>();
  knobs.peer_order = *rc::gen::element(PeerOrder::fixed, PeerOrder::rotated, PeerOrder::staggered);
  knobs.lock =
      *rc::gen::element(LockProtocol::load_store, LockProtocol::exchange, LockProtocol::compare_and_swap);
  knobs.launch = *rc::gen::element(LaunchMode::stream, LaunchMode::graph);
  for (const Pattern& pattern : gemm_all_scatter().patterns) {
    const auto result = execute_functionally(build(pattern, workload, machine, knobs), machine, 3);
    RC_ASSERT(result.stale_reads.empty());
    RC_ASSERT(result.max_relative_error < kTolerance);
  }
}

TEST_P(EveryPattern, GivesATimelineWithoutOverlapOnAnyTrack) {
  const GemmAllScatter workload{70, 131, 37, DType::fp16, 4};
  const Machine machine = small_machine();
  const Schedule schedule = build(pattern(), workload, machine, small_knobs());
  TimelineRecorder recorder(schedule);
  SimulationOptions options;
  options.observer = &recorder;
  options.link_counters = true;
  simulate(schedule, machine, options);
  const Timeline timeline = recorder.take();
  EXPECT_EQ(timeline.ops.size(), schedule.ops.size());  // no pattern claims, so every operation runs once
  EXPECT_EQ(timeline.kernels.size(), schedule.kernels.size());

  const auto trace =
      nlohmann::json::parse(timeline_to_perfetto_json(timeline, schedule, build_topology(machine, 4)));
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> tracks;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const auto ns = [&](const char* key) { return std::llround(event[key].get<double>() * 1000); };
    tracks[{event["pid"], event["tid"]}].emplace_back(ns("ts"), ns("ts") + ns("dur"));
  }
  for (auto& [track, spans] : tracks) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) {
      EXPECT_LE(spans[i - 1].second, spans[i].first) << "GPU " << track.first << " track " << track.second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, EveryPattern, testing::ValuesIn(pattern_names()), [](const auto& pattern) {
  std::string name = pattern.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Turns one operation into a barrier, which orders nothing between workgroups.
std::string remove_first(Schedule& schedule, OpKind kind, int rank) {
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.rank != rank) continue;
    for (const Workgroup& workgroup : kernel.workgroups) {
      for (std::uint32_t op = workgroup.first_op; op < workgroup.first_op + workgroup.op_count; ++op) {
        if (schedule.ops[op].kind == kind) {
          schedule.ops[op] = Op{};
          return kernel.name;
        }
      }
    }
  }
  return "";
}

Schedule producer_consumer(const Machine& machine) {
  return build("producer-consumer", {64, 128, 32, DType::fp16, 2}, machine, small_knobs());
}

TEST(StaleReads, AMissingWaitIsCaughtAndNamesTheReader) {
  Schedule schedule = producer_consumer(small_machine());
  ASSERT_EQ(remove_first(schedule, OpKind::wait, 1), "scatter");
  const FunctionalResult result = execute_functionally(schedule, small_machine(), 7);
  ASSERT_EQ(result.stale_reads.size(), 1U);
  const std::string& message = result.stale_reads.front();
  EXPECT_EQ(message.rfind("kernel 'scatter' rank 1 workgroup ", 0), 0U) << message;
  EXPECT_NE(message.find("(copy)"), std::string::npos) << message;
  EXPECT_NE(message.find("C["), std::string::npos) << message;
}

TEST(StaleReads, EveryMissingWaitIsCaughtHoweverLuckyTheTiming) {
  const Schedule whole = producer_consumer(small_machine());
  int waits = 0;
  for (std::size_t op = 0; op < whole.ops.size(); ++op) {
    if (whole.ops[op].kind != OpKind::wait) continue;
    Schedule schedule = whole;
    schedule.ops[op] = Op{};
    EXPECT_EQ(execute_functionally(schedule, small_machine(), 7).stale_reads.size(), 1U)
        << "operation " << op;
    ++waits;
  }
  EXPECT_EQ(waits, 16);  // 2 x 4 tiles a rank
}

TEST(StaleReads, AMissingWaitIsCaughtThoughTheDataIsLongThere) {
  // The scatter kernel is launched after the host has waited for a framework step, long after the GEMM.
  Schedule schedule = producer_consumer(small_machine());
  Machine machine = small_machine();
  machine.library.framework_sync_ns = 1e9;
  for (auto& program : schedule.host) {
    const auto second = std::find_if(program.rbegin(), program.rend(),
                                     [](const HostOp& op) { return op.kind == HostOpKind::launch; });
    ASSERT_NE(second, program.rend());
    program.insert(second.base() - 1,
                   HostOp{.kind = HostOpKind::host_work, .label = std::string(kFrameworkSync)});
  }
  EXPECT_TRUE(execute_functionally(schedule, machine, 7).stale_reads.empty());
  remove_first(schedule, OpKind::wait, 0);
  const FunctionalResult result = execute_functionally(schedule, machine, 7);
  EXPECT_EQ(result.stale_reads.size(), 1U);
  EXPECT_LT(result.max_relative_error, kTolerance);  // the numbers alone would not have shown it
}

TEST(StaleReads, AMissingSignalEndsWithWhoWaitsForWhat) {
  Schedule schedule = producer_consumer(small_machine());
  ASSERT_EQ(remove_first(schedule, OpKind::signal, 0), "gemm");
  try {
    execute_functionally(schedule, small_machine(), 7);
    FAIL() << "the stall went unseen";
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("kernel 'scatter' rank 0"), std::string::npos) << message;
    EXPECT_NE(message.find("lock"), std::string::npos) << message;
  }
}

TEST(StaleReads, ASignalThatComesBeforeItsStoreIsCaught) {
  Schedule schedule = producer_consumer(small_machine());
  const auto store = std::find_if(schedule.ops.begin(), schedule.ops.end(),
                                  [](const Op& op) { return op.kind == OpKind::store; });
  ASSERT_EQ((store + 1)->kind, OpKind::signal);
  std::iter_swap(store, store + 1);
  EXPECT_FALSE(execute_functionally(schedule, small_machine(), 7).stale_reads.empty());
}

// Changes one signal or wait: removes it, narrows its scope, counts one less, or (no harm) widens its scope.
std::string change_one(Schedule& schedule) {
  std::vector<std::size_t> candidates;
  for (std::size_t op = 0; op < schedule.ops.size(); ++op) {
    const OpKind kind = schedule.ops[op].kind;
    if (kind == OpKind::signal || kind == OpKind::wait) candidates.push_back(op);
  }
  RC_PRE(!candidates.empty());
  const std::size_t at = candidates[*rc::gen::inRange<std::size_t>(0, candidates.size())];
  Op& op = schedule.ops[at];
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      op = Op{};
      return fmt::format("operation {} removed", at);
    case 1:
      op.scope = Scope::workgroup;
      return fmt::format("operation {} in workgroup scope", at);
    case 2:
      op.scope = Scope::system;
      return fmt::format("operation {} in system scope", at);
    default:
      --op.value;
      return fmt::format("operation {} with value {}", at, op.value);
  }
}

// The checker decides from the schedule alone, the executor from one run: the checker may know more, never
// less.
RC_GTEST_PROP(StaleReadLaws, WhatTheExecutorCatchesTheCheckerRefuses, ()) {
  const Machine machine = small_machine();
  const auto name = *rc::gen::element<std::string>("producer-consumer", "workgroup-specialised", "library");
  Schedule schedule = build(name, {70, 131, 37, DType::fp16, 2}, machine, small_knobs());
  RC_LOG() << name << ", " << change_one(schedule);
  const bool refused = !check_schedule(schedule).empty();
  bool caught = false;
  try {
    caught = !execute_functionally(schedule, machine, 7).stale_reads.empty();
  } catch (const UserError&) {
    caught = true;  // stalled or meaningless
  }
  RC_CLASSIFY(caught);
  RC_ASSERT(!caught || refused);
}

}  // namespace
}  // namespace tritax
