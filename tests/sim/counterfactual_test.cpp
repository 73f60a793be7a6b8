// The counterfactual account of the three taxes, and the effect of one change of a machine.
//
// A run without boundaries has the operations, the places and the orders of the run with them, less some of
// the orders. Where no operation can slow another down it is therefore never longer. Where they share what is
// limited it can be, because work that starts earlier meets other work (1 of 2000 runs without host barriers
// took over 1 % longer, up to 9 %): but by no more than its critical path loses to contention, for all else
// on that path the run with boundaries has to do as well.
//
// More bandwidth, or a cost that vanishes, can make a run a little slower for the same reason (the scheduling
// anomalies of Graham, Bounds on multiprocessing timing anomalies, SIAM J. Appl. Math. 17, 1969). Among
// 60,000 random runs free launches never did; more bandwidth cost up to 0.4 %; intermediates on chip up
// to 2.3 %, where copies that no longer wait for memory come to meet on the same link. The laws allow for
// somewhat more. They leave out compare-and-swap locks: who copies faster spins longer, and its swaps are in
// the producers' way (6 % seen).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "any_run.hpp"
#include "hand_machine.hpp"
#include "model/machine/parameters.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

constexpr double kAnomaly = 0.05;  // relative
constexpr double kSmallAnomaly = 0.01;
constexpr double kRounding = 1e-9;

double makespan_ns(const AnyRun& run, const Counterfactual& change = {}) {
  SimulationOptions options;
  options.counterfactual = change;
  return simulate(run.schedule(), run.machine, options).makespan_ns;
}

// Libraries as a framework calls them. In one stream the workgroups of a collective that start early, and
// wait, keep units of these small GPUs from the product (up to 30 % seen; whole GPUs have room for both).
AnyRun any_run_without_swaps() {
  AnyRun run = any_run();
  run.form = CallForm::eager_slices;
  if (run.knobs.lock == LockProtocol::compare_and_swap) run.knobs.lock = LockProtocol::load_store;
  // Nor large stakes for those who find a link full, which in another run are others: no more than on AMD
  // parts.
  constexpr double kSpreadOfAmd = 0.015;
  run.machine.fabric.arbitration_spread = std::min(run.machine.fabric.arbitration_spread, kSpreadOfAmd);
  return run;
}

// How long an operation takes on this machine depends on no other, unless memory stays as it is: links and
// ports are never full, the clock stays, no cache answers sooner than another, and a flag is seen at once.
Machine without_sharing(Machine machine, bool memory_as_well) {
  Gpu& gpu = machine.gpu;
  Fabric& fabric = machine.fabric;
  for (double* rate :
       {&fabric.link_raw_gb_per_s, &fabric.store_egress_gb_per_s, &fabric.store_ingress_gb_per_s,
        &fabric.load_egress_gb_per_s, &fabric.load_ingress_gb_per_s}) {
    *rate = hand::kUnlimited;
  }
  if (memory_as_well) {
    gpu.hbm_gb_per_s = gpu.llc_gb_per_s = gpu.l2_gb_per_s = hand::kUnlimited;
    gpu.hbm_write_gb_per_s = 0;
  }
  for (MatrixRate& rate : gpu.matrix) {
    rate.load_clock_ghz = gpu.boost_clock_ghz;
    rate.light_clock_ghz = 0;
  }
  gpu.load_power_w = 0;  // clocks hold under the limit that there is
  gpu.l2_latency_ns = gpu.llc_latency_ns = gpu.hbm_latency_ns;
  gpu.flag_same_die_ns = gpu.flag_cross_die_ns = gpu.poll_load_ns = gpu.poll_atomic_ns = 0;
  gpu.workgroup_dispatch_ns = 0;
  return machine;
}

// Every workgroup has its compute unit to itself.
Schedule one_to_a_compute_unit(Schedule schedule, const Machine& machine) {
  for (Kernel& kernel : schedule.kernels) {
    kernel.resources.lds_bytes = static_cast<std::int32_t>(machine.gpu.lds_bytes_per_cu);
  }
  return schedule;
}

struct WithAndWithoutBoundaries {
  SimulationResult with, without;
};

// Without host barriers, whose time would hide much; with free launches, kernels meet all the more. Not with
// intermediates on chip: which of them a read of several tiles finds there depends on when it comes.
WithAndWithoutBoundaries any_boundaries(AnyRun run) {
  run.knobs.host_barriers = false;
  run.machine.gpu.loads_wait_for_stores = *rc::gen::arbitrary<bool>();
  const Schedule schedule = one_to_a_compute_unit(run.schedule(), run.machine);
  SimulationOptions options;
  options.counterfactual.free_launches = *rc::gen::arbitrary<bool>();
  WithAndWithoutBoundaries both;
  both.with = simulate(schedule, run.machine, options);
  options.counterfactual.dependences_for_barriers = true;
  both.without = simulate(schedule, run.machine, options);
  return both;
}

RC_GTEST_PROP(CounterfactualLaw, WhereNothingIsSharedDroppedBoundariesDoNotMakeARunSlower, ()) {
  AnyRun run = any_run();
  run.machine = without_sharing(run.machine, true);
  const auto [with, without] = any_boundaries(run);
  RC_ASSERT(without.makespan_ns <= with.makespan_ns * (1 + kRounding));
}

RC_GTEST_PROP(CounterfactualLaw, DroppedBoundariesCostAtMostTheContentionOnTheCriticalPath, ()) {
  AnyRun run = any_run();
  run.machine = without_sharing(run.machine, false);
  // The account calls unequal service contention.
  run.machine.fabric.arbitration_spread = run.machine.gpu.matmul_spread = 0;
  const auto [with, without] = any_boundaries(run);
  RC_ASSERT(without.makespan_ns - without.account.contention_ns <= with.makespan_ns * (1 + kRounding));
}

// With all that a shipped machine shares. What is lost on a full link the account calls wire time, and what
// workgroups of one compute unit take from each other it does not know: seldom more than 1 %, at most 2.7 %
// seen.
RC_GTEST_PROP(CounterfactualLaw, DroppedBoundariesCostLittleMoreThanContentionOnShippedMachines, ()) {
  AnyRun run = any_run_without_swaps();
  run.knobs.host_barriers = false;
  SimulationOptions options;
  options.counterfactual.dependences_for_barriers = true;
  const SimulationResult without = simulate(run.schedule(), run.machine, options);
  RC_ASSERT(without.makespan_ns - without.account.contention_ns <= makespan_ns(run) * (1 + kAnomaly));
}

// The run that was to find its places is cut short, and there are none to go on with.
TEST(Counterfactual, ARunWithoutBoundariesCanBeStoppedBeforeItsPlacesAreFound) {
  const Machine machine = find_machine("mi300x-8");
  Problem problem = problem_of(gemm_all_scatter());
  for (const auto& [field, value] : {std::pair{"m", 4096}, {"n", 4096}, {"k", 512}})
    problem.values.give(field, value);
  complete_problem(problem, "test");
  const Schedule schedule =
      build_schedule(find_pattern(gemm_all_scatter(), "bulk-synchronous", "test"), problem, machine,
                     resolved_knobs(problem, machine, Values(gemm_all_scatter().knobs)));
  const std::atomic<bool> stop = true;
  SimulationOptions options;
  options.stop = &stop;
  options.counterfactual.dependences_for_barriers = true;
  EXPECT_TRUE(simulate(schedule, machine, options).gave_up);
}

RC_GTEST_PROP(CounterfactualLaw, FreeLaunchesDoNotMakeARunSlower, ()) {
  AnyRun run = any_run_without_swaps();
  run.knobs.host_barriers = false;
  RC_ASSERT(makespan_ns(run, {.free_launches = true}) <= makespan_ns(run) * (1 + kSmallAnomaly));
}

RC_GTEST_PROP(CounterfactualLaw, IntermediatesOnChipDoNotMakeARunSlower, ()) {
  const AnyRun run = any_run_without_swaps();
  const double before = makespan_ns(run);
  RC_ASSERT(makespan_ns(run, {.intermediates_on_chip = true}) <= before * (1 + kAnomaly));
  RC_ASSERT(makespan_ns(run, {true, true, true}) <= before * (1 + kAnomaly));
}

// Host time that is on nobody's path any more: at least the first launch and the last synchronisation. Flags
// are seen at once here: who waits already sees one after its latency and at the end of a poll (together up
// to 0.7 us on an H200), who comes later finds it set, and short runs lost up to 2 % to the earlier wait.
RC_GTEST_PROP(CounterfactualLaw, FreeLaunchesSaveWhatTheHostPaysBeforeAndAfterEverything, ()) {
  AnyRun run = any_run_without_swaps();
  run.machine.gpu.flag_same_die_ns = run.machine.gpu.flag_cross_die_ns = run.machine.gpu.poll_load_ns = 0;
  const HostCosts& host = run.machine.host;
  const double call = run.knobs.launch == LaunchMode::graph ? host.graph_launch_call_ns : host.launch_call_ns;
  const double ends = std::min(call, host.launch_call_ns) + host.launch_latency_ns + host.synchronize_ns;
  const double before = makespan_ns(run);
  RC_ASSERT(before - makespan_ns(run, {.free_launches = true}) >= ends - kSmallAnomaly * before);
}

RC_GTEST_PROP(CounterfactualLaw, MoreBandwidthAnywhereDoesNotMakeARunSlower, ()) {
  AnyRun run = any_run_without_swaps();
  const double factor = *rc::gen::element(1.1, 1.5, 4.0);
  const double before = makespan_ns(run);
  std::vector<const ParameterSpec*> rates;
  for (const ParameterSpec& spec : parameter_specs()) {
    if (spec.dimension == Dimension::rate) rates.push_back(&spec);
  }
  const ParameterSpec& spec = *rates[*rc::gen::inRange<std::size_t>(0, rates.size())];
  RC_LOG() << spec.table << "." << spec.name << " times " << factor << "\n";
  scale_parameter(run.machine, spec, factor);
  RC_ASSERT(makespan_ns(run) <= before * (1 + kSmallAnomaly));
}

// Copies of 1 us: tile by tile, alone on a compute unit.
Machine copying_machine(int gpus) {
  Machine machine = hand::machine(gpus);
  machine.gpu.cu_load_gb_per_s = machine.gpu.cu_store_gb_per_s = machine.gpu.cu_remote_store_gb_per_s =
      hand::kTileBytes / 1000;
  return machine;
}

hand::Observed run_without_boundaries(const Schedule& schedule, const Machine& machine) {
  hand::Observed out;
  SimulationOptions options;
  options.counterfactual.dependences_for_barriers = true;
  options.observer = &out.seen;
  out.result = simulate(schedule, machine, options);
  return out;
}

// Die 0 frees its compute units one after the other. The first must not take the copies of all of them: four
// would share its rate.
TEST(WithoutBoundaries, WorkgroupsStayOnTheirComputeUnits) {
  hand::Draft draft(2);
  const auto gemm = draft.gemm_kernel("gemm", 0);
  for (std::int32_t w = 0; w < 8; ++w) {
    draft.builder.workgroup(gemm);
    for (std::int32_t step = 0; step <= w / 2; ++step) draft.matmul(w);
    draft.builder.store(draft.c, hand::Draft::tile(w), 0);
  }
  Kernel kernel;
  kernel.name = "scatter";
  kernel.resources.lds_bytes = 1;  // no room beside a workgroup of the GEMM
  const auto scatter = draft.builder.kernel(kernel);
  for (std::int32_t w = 0; w < 8; ++w) {
    draft.builder.workgroup(scatter);
    for (int copies = 0; copies < (w == 0 ? 3 : 1); ++copies) {
      draft.builder.copy(draft.c, hand::Draft::tile(w), 1, draft.c, w * hand::kTile, 0, 0);
    }
  }
  draft.builder.launch(0, gemm);
  draft.builder.launch(0, scatter);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Schedule schedule = draft.builder.finish();
  Machine machine = copying_machine(2);
  machine.gpu.cu_store_gb_per_s = hand::kUnlimited;
  const hand::Observed with = hand::run(schedule, machine);
  const hand::Observed without = run_without_boundaries(schedule, machine);
  EXPECT_NEAR(with.result.makespan_ns, 4000 + 3000, hand::kExact);
  EXPECT_NEAR(without.result.makespan_ns, 4000 + 1000, hand::kExact);  // the long copy starts after 1 us
  EXPECT_EQ(without.seen.cu_of, with.seen.cu_of);
}

TEST(WithoutBoundaries, AWorkgroupThatWaitsLeavesItsNeighboursTheWholeRate) {
  hand::Draft draft(1);
  const auto write = draft.data_kernel("write", 0);
  draft.builder.workgroup(write);
  for (std::int32_t t = 0; t < 3; ++t) {
    draft.builder.copy(draft.c, hand::Draft::tile(t), 0, draft.a, t * hand::kTile, 0, 0);
  }
  const auto read = draft.data_kernel("read", 0);
  draft.builder.workgroup(read);
  draft.builder.copy(draft.c, hand::Draft::tile(3), 0, draft.c, 2 * hand::kTile, 0, 0);
  draft.builder.launch(0, write);
  draft.builder.launch(0, read);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Schedule schedule = draft.builder.finish();
  Machine machine = copying_machine(1);
  machine.host.launch_call_ns = 10;  // the reader comes when the writer is at work
  EXPECT_NEAR(hand::run(schedule, machine).result.makespan_ns, 10 + 4000, hand::kExact);
  EXPECT_NEAR(run_without_boundaries(schedule, machine).result.makespan_ns, 10 + 4000, hand::kExact);
}

TEST(WithoutBoundaries, AFreeSignalDoesNotHoldUpTheMatmulBehindAStore) {
  hand::Draft draft(1);
  const auto gemm = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(gemm);
  for (std::int32_t t = 0; t < 2; ++t) {
    draft.matmul(t);
    draft.builder.store(draft.c, hand::Draft::tile(t), 0);
  }
  const auto read = draft.data_kernel("read", 0);
  for (std::int32_t t = 0; t < 2; ++t) {
    draft.builder.workgroup(read);
    draft.builder.load(draft.c, hand::Draft::tile(t), 0);
  }
  draft.builder.launch(0, gemm);
  draft.builder.launch(0, read);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const hand::Observed without = run_without_boundaries(draft.builder.finish(), copying_machine(1));
  EXPECT_NEAR((without.seen.ops.at({1, 0, 1}).begin_ns), 2000, hand::kExact);  // tile 0 is written
  EXPECT_NEAR((without.seen.ops.at({1, 1, 1}).begin_ns), 3000, hand::kExact);
}

TEST(WithoutBoundaries, AFreeWaitDoesNotWaitForStores) {
  for (bool Gpu::*trait : {&Gpu::async_tile_store, &Gpu::loads_queue_behind_stores}) {
    hand::Draft draft(1);
    const auto write = draft.data_kernel("write", 0);
    draft.builder.workgroup(write);
    for (std::int32_t t = 0; t < 2; ++t) {
      draft.builder.copy(draft.a, hand::Draft::tile(t), 0, draft.c, 2 * hand::kTile, 0, 0);
    }
    const auto gemm = draft.gemm_kernel("gemm", 0);
    draft.builder.workgroup(gemm);
    for (std::int32_t t = 0; t < 2; ++t) {
      draft.matmul(t);
      draft.builder.store(draft.c, hand::Draft::tile(t), 0);
    }
    draft.builder.launch(0, write);
    draft.builder.launch(0, gemm);
    draft.builder.host(0, HostOpKind::device_synchronize);
    Machine machine = copying_machine(1);
    machine.gpu.*trait = true;
    const hand::Observed without = run_without_boundaries(draft.builder.finish(), machine);
    // Tiles of A are there after 1 and 2 us; operations: wait, matmul, store, wait, matmul, store.
    EXPECT_NEAR((without.seen.ops.at({1, 0, 1}).begin_ns), 1000, hand::kExact);
    EXPECT_NEAR((without.seen.ops.at({1, 0, 4}).begin_ns), 2000, hand::kExact);
  }
}

TEST(WithoutBoundaries, AReleaseBehindAFreeSignalStillWaitsForThePeer) {
  hand::Draft draft(2);
  const auto arrived = draft.builder.flags("arrived", 1);
  const auto send = draft.data_kernel("send", 0);
  draft.builder.workgroup(send);
  draft.builder.copy(draft.c, hand::Draft::tile(0), 1, draft.a, 0, 0, 0);
  draft.signal(arrived, 0, 1);
  const auto receive = draft.data_kernel("receive", 1);
  draft.builder.workgroup(receive);
  draft.wait(arrived, 0);
  const auto read = draft.data_kernel("read", 1);
  draft.builder.workgroup(read);
  draft.builder.load(draft.c, hand::Draft::tile(0), 1);
  draft.builder.launch(0, send);
  draft.builder.launch(1, receive);
  for (const int rank : {0, 1}) {
    draft.builder.host(rank, HostOpKind::device_synchronize);
    draft.builder.host(rank, HostOpKind::barrier);
  }
  draft.builder.launch(1, read);
  draft.builder.host(1, HostOpKind::device_synchronize);
  Machine machine = copying_machine(2);
  machine.gpu.cu_load_gb_per_s = hand::kUnlimited;
  machine.fabric.store_latency_ns = 300;
  const hand::Observed without = run_without_boundaries(draft.builder.finish(), machine);
  EXPECT_NEAR((without.seen.ops.at({1, 0, 0}).end_ns), 1000 + 300, hand::kExact);
}

RC_GTEST_PROP(TaxesLaw, RemainderIsWhatTheThreeTaxesDoNotExplain, ()) {
  const AnyRun run = any_run();
  const Taxes taxes = account_taxes(run.schedule(), run.machine);
  const double before = makespan_ns(run);
  RC_ASSERT(taxes.makespan_ns == before);
  RC_ASSERT(taxes.launch_ns == before - makespan_ns(run, {.free_launches = true}));
  RC_ASSERT(taxes.bulk_synchronous_ns == before - makespan_ns(run, {.dependences_for_barriers = true}));
  RC_ASSERT(taxes.locality_ns == before - makespan_ns(run, {.intermediates_on_chip = true}));
  RC_ASSERT(taxes.all_removed_ns == makespan_ns(run, {true, true, true}));
  const double sum = taxes.all_removed_ns + taxes.launch_ns + taxes.bulk_synchronous_ns + taxes.locality_ns +
                     taxes.remainder_ns;
  RC_ASSERT(std::abs(sum - before) <= 1e-9 * before);
  RC_ASSERT(std::abs(taxes.account.sum_ns() - before) <= 1e-9 * before);
}

class Tax : public testing::TestWithParam<const char*> {
 protected:
  Machine machine() const { return find_machine(GetParam()); }
  Taxes taxes_of(const char* pattern) const {
    const GemmAllScatter workload{2048, 4096, 1024, DType::fp16, 4};
    return account_taxes(build(pattern, workload, machine(), default_gemm_knobs(machine(), workload.dtype)),
                         machine());
  }
};

INSTANTIATE_TEST_SUITE_P(Machines, Tax, testing::Values("mi300x-8", "h200-4"),
                         [](const auto& machine) { return std::string(machine.param).substr(0, 4); });

TEST_P(Tax, FusedKernelsPayNoneForLocalityBecauseNothingIsReadAgain) {
  const Taxes taxes = taxes_of("fused-sequential");
  EXPECT_EQ(taxes.locality_ns, 0);
  EXPECT_EQ(taxes.account.locality_ns, 0);
}

TEST_P(Tax, BulkSynchronousPaysForItsBoundaryForRereadingAndForTwoLaunches) {
  const Taxes taxes = taxes_of("bulk-synchronous");
  EXPECT_GT(taxes.bulk_synchronous_ns, 0);
  EXPECT_GT(taxes.locality_ns, 0);
  EXPECT_GT(taxes.account.locality_ns, 0);
  EXPECT_GT(taxes.launch_ns, taxes_of("fused-sequential").launch_ns);
}

TEST_P(Tax, LibraryBaselinePaysTheMostForLaunches) {
  const double library = taxes_of("library").launch_ns;
  for (const char* pattern :
       {"bulk-synchronous", "producer-consumer", "fused-sequential", "workgroup-specialised"}) {
    EXPECT_GT(library, taxes_of(pattern).launch_ns) << pattern;
  }
}

}  // namespace
}  // namespace tritax
