// The rate of one workgroup alone, in closed form; no condition exceeds the bounds.
#include "model/cost/move_cost.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "model/schedule/op_traits.hpp"
#include "tests/cost/example_machines.hpp"

namespace tritax {
namespace {

constexpr double kTileBytes = 32768;  // 128x128 of 2 bytes
constexpr Rect kTile{0, 0, 128, 128};

Machine machine_of(Machine machine) {
  Gpu& gpu = machine.gpu;
  gpu.cu_load_gb_per_s = 40;
  gpu.cu_store_gb_per_s = 50;
  gpu.cu_remote_store_gb_per_s = 26;
  gpu.cu_remote_load_gb_per_s = 20;
  gpu.cu_remote_atomic_gb_per_s = 10;
  Fabric& fabric = machine.fabric;
  fabric.link_raw_gb_per_s = 64;
  fabric.store_efficiency = 0.75;
  fabric.load_efficiency = 0.5;
  fabric.atomic_efficiency = 0.25;
  fabric.store_egress_gb_per_s = 300;
  fabric.store_ingress_gb_per_s = 310;
  fabric.load_egress_gb_per_s = 200;
  fabric.load_ingress_gb_per_s = 210;
  fabric.load_round_trip_ns = 1500;
  machine.interpreter.copy_op_ns = 400;
  machine.interpreter.store_op_ns = 100;
  return machine;
}

// Rank 0 of two GPUs, with one operation at a time.
struct Bench {
  explicit Bench(Machine of) : machine(std::move(of)) {
    schedule.ranks = 2;
    schedule.buffers.push_back({"T", DType::fp16, 1024, 1024, 128, 128});
    schedule.kernels.resize(1);
  }

  Kernel& kernel() { return schedule.kernels[0]; }
  const Kernel& kernel() const { return schedule.kernels[0]; }
  // What its workgroups reach at most: all moves, or stores to the peer.
  void limit(double gb_per_s) {
    machine.library.slice_copy_gb_per_s = gb_per_s;
    kernel().library = {.routine = LibraryRoutine::block_copy, .channels = 1};
  }
  void limit_remote_stores(double gb_per_s) {
    machine.gpu.post_ns = kTileBytes / gb_per_s;
    kernel().library = {LibraryRoutine::posts, 2, kTileBytes};
  }

  Op op(OpKind kind, std::int16_t rank, std::int16_t src_rank = 0) const {
    Op out;
    out.kind = kind;
    out.rank = rank;
    out.src_rank = src_rank;
    out.buffer = out.src_buffer = 0;
    out.rect = rect;
    return out;
  }
  // Of an operation that meets `met`, at the rate of its workgroup.
  double ns(const Op& op, MoveConditions met = {}) const {
    const CostTable costs(machine);
    const Topology topology = build_topology(machine, schedule.ranks);
    const MoveCosts moves(schedule, machine, costs, topology);
    const DataMove move = move_of(op, 0);
    met.gb_per_s = moves.workgroup_gb_per_s(0, move.kind, sharers);
    return tile_bytes(schedule, op) / moves.gb_per_s_alone(kernel(), op, move, met);
  }
  LinkRates links(KernelProfile profile, Traffic traffic) const {
    const CostTable costs(machine);
    const Topology topology = build_topology(machine, schedule.ranks);
    return MoveCosts(schedule, machine, costs, topology).links(profile, traffic);
  }

  Machine machine;
  Schedule schedule;
  Rect rect = kTile;
  std::int32_t sharers = 1;
};

TEST(MoveOf, SaysWhichWayTheBytesOfAWorkgroupGo) {
  const Bench bench(machine_of(example::amd_node()));
  using K = DataMoveKind;
  const auto expect = [](const Op& op, DataMoveKind kind, int from, int to) {
    const DataMove move = move_of(op, 0);
    EXPECT_EQ(move.kind, kind) << name_of(op.kind);
    EXPECT_EQ(move.from(), from) << name_of(op.kind);
    EXPECT_EQ(move.to(), to) << name_of(op.kind);
  };
  expect(bench.op(OpKind::load, 0), K::local_load, 0, 0);
  expect(bench.op(OpKind::reduce, 1), K::remote_load, 1, 0);
  expect(bench.op(OpKind::store, 0), K::local_store, 0, 0);
  expect(bench.op(OpKind::store, 1), K::remote_store, 0, 1);
  expect(bench.op(OpKind::copy, 0, 0), K::local_copy, 0, 0);
  expect(bench.op(OpKind::copy, 1, 0), K::remote_copy, 0, 1);
  expect(bench.op(OpKind::copy, 0, 1), K::remote_get, 1, 0);
  expect(bench.op(OpKind::atomic_add, 0), K::local_atomic, 0, 0);
  expect(bench.op(OpKind::atomic_add, 1), K::remote_atomic, 0, 1);
}

TEST(MoveOf, ACopyEnginePushesWhatIsItsOwnAndPullsTheRest) {
  const Bench bench(machine_of(example::amd_node()));
  const Op to_peer = bench.op(OpKind::copy, 1, 0);
  EXPECT_EQ(move_by_engine(to_peer, 0).kind, DataMoveKind::engine_put);
  EXPECT_EQ(move_by_engine(to_peer, 1).kind, DataMoveKind::engine_get);
  EXPECT_EQ(move_by_engine(bench.op(OpKind::copy, 1, 1), 0).kind, DataMoveKind::engine_copy);
  for (const std::int32_t poster : {0, 1}) {
    EXPECT_EQ(move_by_engine(to_peer, poster).from(), 0);
    EXPECT_EQ(move_by_engine(to_peer, poster).to(), 1);
  }
}

TEST(MoveCost, IsTheLatencyOfTheFirstBytesAndTheRestAtTheRateOfTheWorkgroup) {
  const Bench bench(machine_of(example::amd_node()));
  const MoveConditions met{.read_ns = 600};
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::load, 0), met), 600 + 400 + kTileBytes / 40);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::copy, 1), met), 600 + 400 + kTileBytes / 26);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::copy, 0), met), 600 + 400 + kTileBytes / 40);
  // Who stores reads nothing, and who reads from a peer makes the trip to it instead.
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::store, 0), met), 100 + kTileBytes / 50);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::store, 1), met), 100 + kTileBytes / 26);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::atomic_add, 1), met), 100 + kTileBytes / 10);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::load, 1), met), 1500 + 400 + kTileBytes / 20);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::copy, 0, 1), met), 1500 + 400 + kTileBytes / 20);
}

TEST(MoveCost, OfALoadFromAPeerKnowsTheNarrowestPlaceOnTheWay) {
  Bench bench(machine_of(example::amd_node()));
  bench.machine.interpreter.copy_op_ns = 0;
  bench.machine.fabric.load_round_trip_ns = 0;
  bench.machine.fabric.link_raw_gb_per_s = 30;
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::load, 1)), kTileBytes / 15);
  bench.machine.fabric.load_ingress_gb_per_s = 12;
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::load, 1)), kTileBytes / 12);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::load, 0)), kTileBytes / 40);
}

TEST(MoveCost, OfALoadFromAnotherNodeGoesThereAndBack) {
  Bench bench(machine_of(example::amd_node()));
  bench.machine.nodes = 2;
  bench.machine.gpus_per_node = 1;
  bench.machine.fabric.network_gb_per_s = 100;
  bench.machine.fabric.network_latency_ns = 2000;
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::load, 1)), 1500 + 2 * 2000 + 400 + kTileBytes / 20);
  EXPECT_EQ(between_nodes_ns(bench.machine, 0, 1), 2000);
  EXPECT_EQ(between_nodes_ns(bench.machine, 1, 1), 0);
}

TEST(MoveCost, TheUnitIsSharedAndTheKernelLimitsItself) {
  Bench bench(machine_of(example::amd_node()));
  const auto store_ns = [&](int rank) {
    return bench.ns(bench.op(OpKind::store, static_cast<std::int16_t>(rank))) - 100;
  };
  bench.sharers = 4;
  EXPECT_NEAR(store_ns(1), kTileBytes / 6.5, 1e-9);
  bench.limit(10);
  EXPECT_NEAR(store_ns(0), kTileBytes / 10, 1e-9);
  EXPECT_NEAR(store_ns(1), kTileBytes / 6.5, 1e-9);
  bench.limit_remote_stores(4);
  EXPECT_NEAR(store_ns(0), kTileBytes / 12.5, 1e-9);
  EXPECT_NEAR(store_ns(1), kTileBytes / 4, 1e-9);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::load, 1)), 1500 + 400 + kTileBytes / 5);  // 20 for four
}

TEST(MoveCost, OfALoneCopyIsItsOwnWhereThatIsKnown) {
  Bench bench(machine_of(example::nvidia_node()));
  KernelCosts& costs = bench.machine.interpreter;
  const MoveConditions lone{.read_ns = 600, .busy_share = 0.5, .lone = true};
  const Op copy = bench.op(OpKind::copy, 0);
  EXPECT_DOUBLE_EQ(bench.ns(copy, lone), 600 + 400 + kTileBytes / 40);
  costs.guarded_copy_ns = 250;
  costs.guarded_copy_gb_per_s = 16;
  costs.busy_copy_ns = 80;
  EXPECT_DOUBLE_EQ(bench.ns(copy, lone), 600 + 250 + 40 + kTileBytes / 16);
  // Another copy runs beside it; its loads hide behind the stores of that.
  EXPECT_DOUBLE_EQ(bench.ns(copy, {.read_ns = 600, .busy_share = 0.5}), 600 + 400 + kTileBytes / 50);
  costs.guarded_copy_least_ns = 740;
  bench.rect = {0, 0, 1, 128};  // moved long before
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::copy, 0), lone), 600 + 740 + 40);
  // A kernel that multiplies has the registers for more.
  bench.kernel().tile = {128, 128, 64, 8, Pipeline::serial};
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::copy, 0), lone), 600 + 400 + 40 + 256.0 / 50);
}

TEST(MoveCost, KernelsThatMultiplyCopyAtAShareAndAllAtTheClockOfTheirUnit) {
  Bench bench(machine_of(example::nvidia_node()));
  bench.machine.interpreter.specialised_copy_efficiency = 0.8;
  const double alone_ns = 400 + kTileBytes / 26;
  const Op copy = bench.op(OpKind::copy, 1);
  EXPECT_DOUBLE_EQ(bench.ns(copy), alone_ns);
  EXPECT_DOUBLE_EQ(bench.ns(copy, {.clock_share = 0.5}), alone_ns / 0.5);
  bench.kernel().tile = {128, 128, 64, 8, Pipeline::serial};
  EXPECT_DOUBLE_EQ(bench.ns(copy), alone_ns / 0.8);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::store, 1)), 100 + kTileBytes / 26);
}

TEST(MoveCost, OfSumsHasTheAdditionsAndOfAVendorsNoSecondLatency) {
  Bench bench(machine_of(example::nvidia_node()));
  const MoveConditions met{.read_ns = 600};
  bench.machine.interpreter.accumulate_gb_per_s = 100;
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::reduce, 0), met),
                   600 + 400 + kTileBytes / 100 + kTileBytes / 40);
  bench.kernel().profile = KernelProfile::vendor;
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::reduce, 0), met), kTileBytes / 40);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::load, 0), met), 600 + kTileBytes / 40);
}

TEST(MoveCost, OfRaggedRowsIsMoreForCopiesAndOnLinks) {
  Bench bench(machine_of(example::nvidia_node()));
  KernelCosts& costs = bench.machine.interpreter;
  costs.ragged_copy_ns = 1000;
  costs.ragged_end_bytes = 64;
  const double whole_ns = bench.ns(bench.op(OpKind::copy, 1));
  bench.rect = {0, 1, 128, 128};
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::copy, 1)), whole_ns + 1000);
  EXPECT_DOUBLE_EQ(bench.ns(bench.op(OpKind::store, 1)), 100 + kTileBytes / 26);
  const CostTable table(bench.machine);
  const Topology topology = build_topology(bench.machine, 2);
  const MoveCosts moves(bench.schedule, bench.machine, table, topology);
  EXPECT_DOUBLE_EQ(moves.link_cost(bench.kernel(), bench.op(OpKind::store, 1), false), 1 + 2 * 64.0 / 256);
  bench.rect = kTile;
  EXPECT_EQ(moves.link_cost(bench.kernel(), bench.op(OpKind::store, 1), false), 1);
}

TEST(LinkRates, AreThoseOfTheTrafficAndOfWhoStores) {
  Bench bench(machine_of(example::nvidia_node()));
  bench.machine.fabric.kind = LinkKind::node_switch;
  bench.machine.fabric.load_efficiency = 0.9;
  bench.machine.gpus_per_node = 2;
  const LinkRates own = bench.links(KernelProfile::interpreter, Traffic::stores);
  EXPECT_EQ(own.ports, Ports::store);
  EXPECT_EQ(own.efficiency, 0.75);
  EXPECT_EQ(own.egress_gb_per_s, 300);
  EXPECT_EQ(bench.links(KernelProfile::vendor, Traffic::stores).efficiency, 0.9);
  EXPECT_EQ(bench.links(KernelProfile::vendor, Traffic::atomics).efficiency, 0.25);
  const LinkRates loads = bench.links(KernelProfile::interpreter, Traffic::loads);
  EXPECT_EQ(loads.ports, Ports::load);
  EXPECT_EQ(loads.efficiency, 0.9);
  EXPECT_EQ(loads.ingress_gb_per_s, 210);
  EXPECT_EQ(bench.links(KernelProfile::interpreter, Traffic::none).ports, Ports::none);
}

TEST(LinkRates, OfCopyEnginesHaveThePortsOfASwitchAndPassThoseOfAMesh) {
  Bench bench(machine_of(example::amd_node()));
  const auto put = [&] { return bench.links(KernelProfile::interpreter, Traffic::engine_stores); };
  bench.machine.copy_engine.gb_per_s = 32;  // half of a link: less than stores reach
  EXPECT_EQ(put().ports, Ports::none);
  EXPECT_EQ(put().efficiency, 0.75);
  bench.machine.copy_engine.gb_per_s = 56;
  EXPECT_EQ(put().efficiency, 0.875);
  bench.machine.fabric.kind = LinkKind::node_switch;
  EXPECT_EQ(put().ports, Ports::store);
  EXPECT_EQ(put().efficiency, 0.75);
  EXPECT_EQ(bench.links(KernelProfile::interpreter, Traffic::engine_loads).ports, Ports::load);
}

double any_between(int low, int high) { return *rc::gen::inRange(low, high + 1); }

// The bounds know a workgroup that has its unit for itself, and of what is to come the engine expects that
// nothing holds it up. Neither may be slower than what the engine lets a workgroup have, whatever it meets.
RC_GTEST_PROP(MoveCostLaw, NothingThatAMoveMeetsMakesItFasterThanItsBounds, ()) {
  Bench bench(machine_of(*rc::gen::element(example::amd_node(), example::nvidia_node())));
  KernelCosts& costs = bench.machine.interpreter;
  bench.machine.gpu.cu_load_gb_per_s = any_between(1, 100);
  costs.copy_op_ns = any_between(0, 500);
  costs.guarded_copy_ns = any_between(0, 500);
  costs.guarded_copy_gb_per_s = any_between(0, 60);
  costs.guarded_copy_least_ns = any_between(0, 900);
  costs.busy_copy_ns = any_between(0, 300);
  costs.ragged_copy_ns = any_between(0, 300);
  costs.accumulate_gb_per_s = any_between(0, 100);
  costs.specialised_copy_efficiency = any_between(0, 10) / 10;
  bench.kernel().profile =
      *rc::gen::element(KernelProfile::interpreter, KernelProfile::triton, KernelProfile::vendor);
  if (*rc::gen::arbitrary<bool>()) {
    bench.limit(any_between(0, 30));
  } else {
    bench.limit_remote_stores(any_between(1, 30));
  }
  if (*rc::gen::arbitrary<bool>()) bench.kernel().tile = {128, 128, 64, 8, Pipeline::serial};
  bench.rect = {0, *rc::gen::inRange(0, 64), *rc::gen::inRange(1, 257), *rc::gen::inRange(1, 257)};
  const auto kind =
      *rc::gen::element(OpKind::load, OpKind::store, OpKind::copy, OpKind::reduce, OpKind::atomic_add);
  const Op op = bench.op(kind, *rc::gen::element<std::int16_t>(0, 1), *rc::gen::element<std::int16_t>(0, 1));

  const DataMove move = move_of(op, 0);
  const double least_read_ns = any_between(0, 300);
  MoveConditions met{.read_ns = least_read_ns + any_between(0, 500),
                     .busy_share = any_between(0, 8) / 8,
                     .clock_share = any_between(1, 8) / 8,
                     .lone = move.copies_own() && *rc::gen::arbitrary<bool>()};
  const MoveConditions best{.read_ns = least_read_ns, .lone = met.lone};
  const double expected_ns = bench.ns(op, best);
  const CostTable table(bench.machine);
  const Topology topology = build_topology(bench.machine, 2);
  const MoveCosts moves(bench.schedule, bench.machine, table, topology);
  const double bound_ns = tile_bytes(bench.schedule, op) / moves.workgroup_gb_per_s(0, move.kind);
  bench.sharers = *rc::gen::inRange(1, 9);
  constexpr double kRounding = 1 + 1e-12;
  RC_ASSERT(bound_ns <= expected_ns * kRounding);
  RC_ASSERT(expected_ns <= bench.ns(op, met) * kRounding);
}

// The loads of a search are one operation: only the first is set up.
TEST(MoveCosts, SetsUpASearchOnce) {
  Bench bench(machine_of(example::amd_node()));
  bench.machine.interpreter.copy_op_ns = 300;
  bench.rect = {0, 3, 1, 1};
  const Op first = bench.op(OpKind::load, 0);
  bench.rect = {0, 700, 1, 1};
  const Op next = bench.op(OpKind::load, 0);
  EXPECT_TRUE(goes_on_search(first, next));
  EXPECT_NEAR(bench.ns(next, {.read_ns = 500}) - bench.ns(next, {.read_ns = 500, .probes = true}), 300, 1e-6);
  EXPECT_FALSE(goes_on_search(bench.op(OpKind::reduce, 0), next));
  EXPECT_FALSE(goes_on_search(first, bench.op(OpKind::load, 1)));
  bench.rect = {0, 0, 1, 2};
  EXPECT_FALSE(goes_on_search(first, bench.op(OpKind::load, 0)));
}

// Two nodes of one GPU each.
Bench across_nodes() {
  Machine machine = machine_of(example::amd_node());
  machine.nodes = 2;
  machine.gpus_per_node = 1;
  machine.fabric.network_gb_per_s = 50;
  machine.network.message_ns = 4;
  return Bench(machine);
}

double message_cost(const Bench& bench, const Op& op, double payload_share) {
  const CostTable costs(bench.machine);
  const Topology topology = build_topology(bench.machine, bench.schedule.ranks);
  return MoveCosts(bench.schedule, bench.machine, costs, topology)
      .message_cost(op, move_of(op, 0), KernelProfile::interpreter, payload_share);
}

// Law: the bytes of a move times its cost, over the payload of a NIC, is the time of its bytes and of a
// message for every row that does not lie behind the one before at its target; of its flags too, where they
// travel in the words of the data.
TEST(MessageCost, IsOneMessageForEveryRowThatLiesApartInTheRemoteMatrix) {
  Bench bench = across_nodes();
  for (const double efficiency : {0.0, 0.5, 0.98}) {
    bench.machine.network.efficiency = efficiency;
    const double payload = 50 * (efficiency > 0 ? efficiency : bench.machine.fabric.store_efficiency);
    const auto expect = [&](const Op& op, double messages) {
      for (const double share : {1.0, 0.9375, 0.5}) {
        EXPECT_NEAR(kTileBytes * message_cost(bench, op, share) / payload,
                    kTileBytes / share / payload + messages * 4, 1e-6)
            << share;
      }
    };
    bench.rect = kTile;
    expect(bench.op(OpKind::store, 1), 128);
    expect(bench.op(OpKind::copy, 1), 128);
    bench.rect = {0, 0, 16, 1024};  // as many bytes, as wide as the matrix
    expect(bench.op(OpKind::store, 1), 1);
  }
}

TEST(MessageCost, IsOfWhatNicsCarryAndOfMachinesThatKnowIt) {
  Bench bench = across_nodes();
  const auto is_message = [&](const Op& op) {
    const CostTable costs(bench.machine);
    const Topology topology = build_topology(bench.machine, bench.schedule.ranks);
    return MoveCosts(bench.schedule, bench.machine, costs, topology).is_message(move_of(op, 0));
  };
  EXPECT_TRUE(is_message(bench.op(OpKind::store, 1)));
  EXPECT_TRUE(is_message(bench.op(OpKind::copy, 0, 1)));
  EXPECT_FALSE(is_message(bench.op(OpKind::store, 0)));
  bench.machine.network.message_ns = 0;
  EXPECT_FALSE(is_message(bench.op(OpKind::store, 1)));
}

// Payload on NICs is the network's, on links within the node the fabric's.
TEST(LinksOfKernels, TakeThePayloadOfNicsFromTheNetwork) {
  Bench bench = across_nodes();
  bench.machine.network.efficiency = 0.98;
  bench.machine.network.atomic_efficiency = 0.05;
  TopologyEdge nic, link;
  nic.network = true;
  const LinkRates stores = bench.links(KernelProfile::interpreter, Traffic::stores);
  EXPECT_EQ(stores.efficiency_on(nic), 0.98);
  EXPECT_EQ(stores.efficiency_on(link), 0.75);
  EXPECT_EQ(bench.links(KernelProfile::interpreter, Traffic::loads).efficiency_on(nic), 0.98);
  EXPECT_EQ(bench.links(KernelProfile::interpreter, Traffic::atomics).efficiency_on(nic), 0.05);
  bench.machine.network.efficiency = 0;
  EXPECT_EQ(bench.links(KernelProfile::interpreter, Traffic::stores).efficiency_on(nic), 0.75);
}

TEST(BetweenNodes, TakesTheNetworkAndTheSpineOnlyWhereLeavesDiffer) {
  Machine machine = machine_of(example::amd_node());
  machine.nodes = 2;
  machine.gpus_per_node = 2;
  machine.network.kind = NetworkKind::rails;
  machine.fabric.network_latency_ns = 2000;
  machine.network.spine_latency_ns = 500;
  EXPECT_EQ(between_nodes_ns(machine, 0, 0), 0);
  EXPECT_EQ(between_nodes_ns(machine, 0, 1), 0);
  EXPECT_EQ(between_nodes_ns(machine, 0, 2), 2000);
  EXPECT_EQ(between_nodes_ns(machine, 0, 3), 2500);
}

}  // namespace
}  // namespace tritax
