// Copies by copy engines and events, timed by hand.
#include <gtest/gtest.h>

#include "hand_machine.hpp"
#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/check.hpp"
#include "model/select/bounds.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::kTileBytes;
using hand::run;

constexpr double kRate = 10;  // GB/s of an engine
constexpr double kPacketNs = 500;
constexpr double kMoveNs = kTileBytes / kRate;  // a tile by an engine that nothing else slows down

Machine with_copy_engines(int engines, int gpus = 2) {
  Machine machine = hand::machine(gpus);
  machine.copy_engine = {engines, kRate, kPacketNs};
  return machine;
}

// Rank 0 pulls tile `row` of A of rank 1 into its C.
void pull(Draft& draft, std::int32_t row, std::int32_t stream) {
  draft.builder.host_copy(0, stream, draft.c, Draft::tile(row), 0, draft.a, row * hand::kTile, 0, 1);
}

TEST(CopyEngine, TakesItsPacketAndThenItsBytesAtItsRate) {
  Draft draft(2);
  pull(draft, 0, 0);
  const SimulationResult result = run(draft.builder.finish(), with_copy_engines(1)).result;
  EXPECT_NEAR(result.makespan_ns, kPacketNs + kMoveNs, kExact);
  EXPECT_NEAR(result.account.launch_ns, kPacketNs, kExact);
  EXPECT_NEAR(result.account.wire_ns, kMoveNs, kExact);
  EXPECT_NEAR(result.link_bytes[0] + result.link_bytes[1], kTileBytes, kExact);
}

TEST(CopyEngine, PushesAndCopiesWithinAGpuAtTheSameRate) {
  for (const int to : {0, 1}) {
    Draft draft(2);
    draft.builder.host_copy(0, 0, draft.c, Draft::tile(0), to, draft.a, 0, 0, 0);
    const SimulationResult result = run(draft.builder.finish(), with_copy_engines(1)).result;
    EXPECT_NEAR(result.makespan_ns, kPacketNs + kMoveNs, kExact);
    EXPECT_NEAR(to == 0 ? result.account.memory_ns : result.account.wire_ns, kMoveNs, kExact);
  }
}

TEST(CopyEngine, ServesOneTransferAfterTheOther) {
  Draft draft(2);
  pull(draft, 0, 0);
  pull(draft, 1, 1);
  const SimulationResult result = run(draft.builder.finish(), with_copy_engines(1)).result;
  EXPECT_NEAR(result.makespan_ns, 2 * (kPacketNs + kMoveNs), kExact);
  EXPECT_NEAR(result.account.launch_ns, 2 * kPacketNs, kExact);
  EXPECT_NEAR(result.account.wire_ns, 2 * kMoveNs, kExact);
}

TEST(CopyEngine, SharesALinkWithAnotherEngine) {
  Draft draft(2);
  pull(draft, 0, 0);
  pull(draft, 1, 1);
  Machine machine = with_copy_engines(2);
  EXPECT_NEAR(run(draft.builder.finish(), machine).result.makespan_ns, kPacketNs + kMoveNs, kExact);
  Draft full(2);
  pull(full, 0, 0);
  pull(full, 1, 1);
  machine.fabric.link_raw_gb_per_s = kRate;
  const SimulationResult result = run(full.builder.finish(), machine).result;
  EXPECT_NEAR(result.makespan_ns, kPacketNs + 2 * kMoveNs, kExact);
  EXPECT_NEAR(result.account.wire_ns, 2 * kMoveNs, kExact);
}

TEST(CopyEngine, TakesTransfersOfOneStreamInTurnThoughAnotherEngineIsFree) {
  Draft draft(2);
  pull(draft, 0, 3);
  pull(draft, 1, 3);
  EXPECT_NEAR(run(draft.builder.finish(), with_copy_engines(2)).result.makespan_ns, 2 * (kPacketNs + kMoveNs),
              kExact);
}

TEST(CopyEngine, PostingCostsTheHostTheCallOfALaunch) {
  Draft draft(2);
  pull(draft, 0, 0);
  pull(draft, 1, 1);
  Machine machine = with_copy_engines(2);
  machine.host.launch_call_ns = 100;
  EXPECT_NEAR(run(draft.builder.finish(), machine).result.makespan_ns, 2 * 100 + kPacketNs + kMoveNs, kExact);
}

// On a mesh what a GPU loads in all is a limit of its compute units; behind a switch it is one of the part.
TEST(CopyEngine, IsHeldUpByThePortsOfAGpuBehindASwitchOnly) {
  for (const bool mesh : {true, false}) {
    Draft draft(2);
    pull(draft, 0, 0);
    Machine machine = with_copy_engines(1);
    machine.fabric.kind = mesh ? LinkKind::mesh : LinkKind::node_switch;
    machine.fabric.link_raw_gb_per_s = 2 * kRate;
    machine.fabric.load_efficiency = 0.25;  // of a workgroup; an engine is known to reach a half
    machine.fabric.load_ingress_gb_per_s = kRate / 4;
    const double expected_ns = kPacketNs + (mesh ? 1 : 4) * kMoveNs;
    const Schedule schedule = draft.builder.finish();
    EXPECT_NEAR(run(schedule, machine).result.makespan_ns, expected_ns, kExact);
    EXPECT_LE(time_bound(schedule, machine, build_topology(machine, 2)).total_ns, expected_ns + kExact);
  }
}

TEST(CopyEngine, IsBoundedFromBelowByItsPacketAndItsBytes) {
  for (const int copies : {1, 2, 3}) {
    Draft draft(2);
    for (int i = 0; i < copies; ++i) pull(draft, i, i);
    draft.builder.record_event(0, 0);
    draft.builder.wait_event(0, 0, 5);
    draft.builder.host(0, HostOpKind::device_synchronize);
    Machine machine = with_copy_engines(2);
    machine.host.launch_call_ns = 10;
    machine.fabric.link_raw_gb_per_s = 1.5 * kRate;
    const Schedule schedule = draft.builder.finish();
    const double bound_ns = time_bound(schedule, machine, build_topology(machine, 2)).total_ns;
    EXPECT_LE(bound_ns, run(schedule, machine).result.makespan_ns + kExact);
    EXPECT_GE(bound_ns, kPacketNs + kMoveNs);
  }
}

std::int32_t product(Draft& draft, const char* name) {
  const std::int32_t kernel = draft.gemm_kernel(name, 0);
  draft.builder.workgroup(kernel);
  draft.matmul(0);
  return kernel;
}

TEST(CopyEngine, TakesItsTurnAmongTheKernelsOfItsStream) {
  Draft draft(2);
  draft.builder.launch(0, product(draft, "before"), 2);
  pull(draft, 0, 2);
  draft.builder.launch(0, product(draft, "after"), 2);
  draft.builder.host(0, HostOpKind::stream_synchronize, 2);
  const SimulationResult result = run(draft.builder.finish(), with_copy_engines(1)).result;
  EXPECT_NEAR(result.makespan_ns, 2 * kStepNs + kPacketNs + kMoveNs, kExact);
  EXPECT_NEAR(result.account.compute_ns, 2 * kStepNs, kExact);
}

TEST(Events, AWaitHoldsUpItsStreamUntilTheRecordHappens) {
  Draft draft(2);
  draft.builder.launch(0, product(draft, "first"));
  draft.builder.record_event(0, 7);
  draft.builder.wait_event(0, 7, 1);
  pull(draft, 0, 1);
  draft.builder.record_event(0, 7, 1);
  draft.builder.wait_event(0, 7, 2);
  draft.builder.launch(0, product(draft, "second"), 2);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const SimulationResult result = run(draft.builder.finish(), with_copy_engines(1)).result;
  EXPECT_NEAR(result.makespan_ns, 2 * kStepNs + kPacketNs + kMoveNs, kExact);
  EXPECT_NEAR(result.account.wire_ns, kMoveNs, kExact);
}

TEST(Events, ARecordStandsForWhatCameBeforeIt) {
  Draft draft(2);
  draft.builder.record_event(0, 0);
  draft.builder.launch(0, product(draft, "later"));
  draft.builder.wait_event(0, 0, 1);
  pull(draft, 0, 1);
  EXPECT_NEAR(run(draft.builder.finish(), with_copy_engines(1)).result.makespan_ns, kPacketNs + kMoveNs,
              kExact);
}

TEST(Events, AHostThatWaitsForAStreamWaitsForItsEvents) {
  Draft draft(2);
  pull(draft, 0, 0);
  draft.builder.record_event(0, 0);
  draft.builder.wait_event(0, 0, 1);
  draft.builder.host(0, HostOpKind::stream_synchronize, 1);
  Machine machine = with_copy_engines(1);
  machine.host.synchronize_ns = 20;
  EXPECT_NEAR(run(draft.builder.finish(), machine).result.makespan_ns, kPacketNs + kMoveNs + 20, kExact);
}

TEST(CopyEngine, IsRefusedOnAMachineThatDoesNotSayWhatItIs) {
  const auto refusal = [](const CopyEngines& engines) -> std::string {
    Draft draft(2);
    pull(draft, 0, 0);
    Machine machine = hand::machine(2);
    machine.copy_engine = engines;
    try {
      simulate(draft.builder.finish(), machine);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal({0, kRate, kPacketNs}).find("copy_engine.engines"), std::string::npos);
  EXPECT_NE(refusal({2, 0, kPacketNs}).find("copy_engine.rate"), std::string::npos);
  EXPECT_NE(refusal({2, kRate, 0}).find("copy_engine.packet"), std::string::npos);
  EXPECT_EQ(refusal({2, kRate, kPacketNs}), "");
}

TEST(CopyEngine, KeepsItsBoundariesAndLosesItsPacketInTheCounterfactuals) {
  Draft draft(2);
  draft.builder.launch(0, product(draft, "first"));
  pull(draft, 0, 0);
  const Taxes taxes = account_taxes(draft.builder.finish(), with_copy_engines(1));
  EXPECT_NEAR(taxes.launch_ns, kPacketNs, kExact);
  EXPECT_NEAR(taxes.bulk_synchronous_ns, 0, kExact);
  EXPECT_NEAR(taxes.remainder_ns, 0, kExact);
}

// Copy engines gather the shards of two ranks; a kernel of rank 0 copies what they brought, in another
// stream.
Schedule gathered(bool waits, int gather_from = 1) {
  ScheduleBuilder builder("gather", 2);
  const std::int16_t shard = builder.buffer({"shard", DType::fp16, 4, 8, 4, 8});
  const std::int16_t all = builder.buffer({"all", DType::fp16, 8, 8, 4, 8});
  const std::int16_t out = builder.buffer({"out", DType::fp16, 8, 8, 4, 8});
  builder.expect_gathered_rows(shard, all);
  for (int rank = 0; rank < 2; ++rank) {
    for (int from = 0; from < 2; ++from) {
      builder.host_copy(rank, 1 + from, all, {4 * from, 0, 4, 8}, rank, shard, 0, 0, from);
      builder.record_event(rank, from, 1 + from);
    }
  }
  builder.expect_copy({out, 0, {0, 0, 4, 8}}, {all, 0, {4 * gather_from, 0, 4, 8}});
  Kernel kernel;
  kernel.name = "use";
  const std::int32_t id = builder.kernel(kernel);
  builder.workgroup(id);
  builder.copy(out, {0, 0, 4, 8}, 0, all, 4 * gather_from, 0, 0);
  if (waits) builder.wait_event(0, gather_from);
  builder.launch(0, id);
  for (int rank = 0; rank < 2; ++rank) builder.host(rank, HostOpKind::device_synchronize);
  return builder.finish();
}

TEST(CopyEngine, BringsRealDataWhereItsEventOrdersTheReader) {
  for (const int from : {0, 1}) {
    const Schedule schedule = gathered(true, from);
    EXPECT_TRUE(check_schedule(schedule).empty());
    EXPECT_TRUE(check_schedule_on(schedule, with_copy_engines(2)).empty());
    const FunctionalResult result = execute_functionally(schedule, with_copy_engines(2), 5);
    EXPECT_TRUE(result.stale_reads.empty()) << result.stale_reads.front();
    EXPECT_LT(result.max_relative_error, 1e-6);
  }
}

TEST(CopyEngine, AReadThatNoEventOrdersBehindItIsFoundByTheCheckerAndInTheRun) {
  const Schedule schedule = gathered(false);
  const std::vector<Finding> findings = check_schedule(schedule);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, Finding::Kind::unordered_read);
  EXPECT_NE(findings[0].message.find("host operation 2 (copy) of rank 0"), std::string::npos)
      << findings[0].message;
  EXPECT_FALSE(execute_functionally(schedule, with_copy_engines(2), 5).stale_reads.empty());
}

// The copy reads what a kernel of another stream writes.
TEST(CopyEngine, ACopyThatRacesWithTheWriterOfItsSourceIsFound) {
  for (const bool waits : {false, true}) {
    ScheduleBuilder builder("race", 1);
    const std::int16_t from = builder.buffer({"from", DType::fp16, 4, 8, 4, 8});
    const std::int16_t middle = builder.buffer({"middle", DType::fp16, 4, 8, 4, 8});
    const std::int16_t to = builder.buffer({"to", DType::fp16, 4, 8, 4, 8});
    builder.input(builder.whole(from));
    builder.expect_copy(builder.whole(to, 0), builder.whole(from, 0));
    Kernel kernel;
    kernel.name = "write";
    const std::int32_t id = builder.kernel(kernel);
    builder.workgroup(id);
    builder.copy(middle, {0, 0, 4, 8}, 0, from, 0, 0, 0);
    builder.launch(0, id);
    builder.record_event(0, 0);
    if (waits) builder.wait_event(0, 0, 1);
    builder.host_copy(0, 1, to, {0, 0, 4, 8}, 0, middle, 0, 0, 0);
    const Schedule schedule = builder.finish();
    const std::vector<Finding> findings = check_schedule(schedule);
    EXPECT_EQ(findings.empty(), waits);
    if (!findings.empty()) {
      EXPECT_EQ(findings[0].where, "host operation 2 (copy) of rank 0");
    }
    EXPECT_EQ(execute_functionally(schedule, with_copy_engines(1), 5).stale_reads.empty(), waits);
  }
}

}  // namespace
}  // namespace tritax
