// Transfers between nodes, exactly: rates of NICs, messages and latencies, on a machine where nothing else
// takes time. 2 nodes of 2 GPUs on rails: ranks 0 and 2 share one, and 0 and 3 meet in the spine.
#include <gtest/gtest.h>

#include "hand_machine.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kTile;
using hand::kTileBytes;
using hand::run;

constexpr int kRanks = 4;
constexpr double kNicNs = 2000;  // of a tile on a NIC

Machine two_nodes() {
  Machine machine = hand::machine(2);
  machine.nodes = 2;
  machine.network.kind = NetworkKind::rails;
  machine.fabric.network_gb_per_s = kTileBytes / kNicNs;
  return machine;
}

// How long rank 0 takes to store a tile of C, or of a matrix that is wider, to `target`.
double nic_store_ns(const Machine& machine, int target, bool wide = false, double payload_share = 1) {
  Draft draft(kRanks);
  const std::int16_t matrix =
      wide ? draft.builder.buffer({"W", DType::fp16, kTile, 4 * kTile, kTile, kTile}) : draft.c;
  const auto kernel = draft.data_kernel("stores", 0);
  draft.builder.workgroup(kernel);
  draft.builder.store(matrix, Draft::tile(0), target);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  Schedule schedule = draft.builder.finish();
  schedule.kernels[static_cast<std::size_t>(kernel)].payload_share = payload_share;
  return run(schedule, machine).seen.kernels.at(0).length_ns();
}

TEST(Network, ATileTakesWhatItsPayloadNeedsOfANic) {
  Machine machine = two_nodes();
  EXPECT_NEAR(nic_store_ns(machine, 1), 0, kExact);  // stays in the node
  EXPECT_NEAR(nic_store_ns(machine, 2), kNicNs, kExact);
  machine.network.efficiency = 0.8;
  EXPECT_NEAR(nic_store_ns(machine, 2), kNicNs / 0.8, kExact);
  EXPECT_NEAR(nic_store_ns(machine, 1), 0, kExact);
  machine.network.efficiency = 0;  // as in a node
  machine.fabric.store_efficiency = 0.5;
  EXPECT_NEAR(nic_store_ns(machine, 2), kNicNs / 0.5, kExact);
}

// Rows that lie apart at the target go as messages of their own; a tile as wide as the matrix is one.
TEST(Network, EveryRowThatLiesApartIsAMessage) {
  Machine machine = two_nodes();
  machine.network.message_ns = 10;
  EXPECT_NEAR(nic_store_ns(machine, 2), kNicNs + 10, kExact);
  EXPECT_NEAR(nic_store_ns(machine, 2, true), kNicNs + kTile * 10, kExact);
  EXPECT_NEAR(nic_store_ns(machine, 1, true), 0, kExact);
  // It is the NIC that takes the time, whatever of its rate is payload.
  machine.network.efficiency = 0.5;
  EXPECT_NEAR(nic_store_ns(machine, 2, true), kNicNs / 0.5 + kTile * 10, kExact);
}

// Flags in the words of the data are bytes of the message, and no messages of their own; the GPU's port
// carries them too.
TEST(Network, FlagsInTheWordsOfTheDataTakeNicsAndPorts) {
  Machine machine = two_nodes();
  EXPECT_NEAR(nic_store_ns(machine, 2, false, 0.5), 2 * kNicNs, kExact);
  machine.network.message_ns = 10;
  EXPECT_NEAR(nic_store_ns(machine, 2, false, 0.5), 2 * kNicNs + 10, kExact);
  EXPECT_NEAR(nic_store_ns(machine, 2, true, 0.5), 2 * kNicNs + kTile * 10, kExact);
  constexpr double kPortNs = 3 * kNicNs;
  machine.fabric.store_egress_gb_per_s = kTileBytes / kPortNs;
  EXPECT_NEAR(nic_store_ns(machine, 2, true), kPortNs, kExact);
  EXPECT_NEAR(nic_store_ns(machine, 2, true, 0.5), 2 * kPortNs, kExact);
}

// When the waiting rank sees the signal of a rank that has stored a tile to it.
double seen_ns(const Machine& machine, int target) {
  Draft draft(kRanks);
  const std::int16_t flag = draft.builder.flags("ready", 1);
  const auto sends = draft.data_kernel("sends", 0);
  draft.builder.workgroup(sends);
  draft.builder.store(draft.c, Draft::tile(0), target);
  draft.signal(flag, 0, target);
  const auto waits = draft.data_kernel("waits", target);
  draft.builder.workgroup(waits);
  draft.wait(flag, 0);
  for (const auto& [rank, kernel] : {std::pair{0, sends}, std::pair{target, waits}}) {
    draft.builder.launch(rank, kernel);
    draft.builder.host(rank, HostOpKind::device_synchronize);
  }
  return run(draft.builder.finish(), machine).seen.kernels.at(1).end_ns;
}

// The store has to arrive before the signal leaves, and each of the two makes the way once.
TEST(Network, StoreAndSignalPassTheNetworkOnceEachAndTheSpineWhereRailsDiffer) {
  Machine machine = two_nodes();
  machine.fabric.store_latency_ns = 100;
  machine.fabric.flag_latency_ns = 300;
  const double in_node = seen_ns(machine, 1);
  EXPECT_NEAR(in_node, 100 + 300, kExact);
  machine.fabric.network_latency_ns = 1000;
  machine.network.spine_latency_ns = 70;
  EXPECT_NEAR(seen_ns(machine, 1), in_node, kExact);
  EXPECT_NEAR(seen_ns(machine, 2), in_node + kNicNs + 2 * 1000, kExact);
  EXPECT_NEAR(seen_ns(machine, 3), in_node + kNicNs + 2 * (1000 + 70), kExact);
}

// Half of what two NICs under a leaf send passes on to the spine: who crosses rails alone does not notice,
// and two of them from one leaf share one NIC's rate.
TEST(Network, UplinksHoldBackThoseWhoCrossTheSpineTogether) {
  Machine machine = two_nodes();
  machine.network.uplink_share = 0.5;  // of a rail's 2 NICs: one
  EXPECT_NEAR(nic_store_ns(machine, 3), kNicNs, kExact);
  Draft draft(kRanks);
  for (const auto& [rank, target] : {std::pair{0, 3}, std::pair{2, 1}}) {  // both from rail 0 to rail 1
    const auto kernel = draft.data_kernel("stores", rank);
    draft.builder.workgroup(kernel);
    draft.builder.store(draft.c, Draft::tile(0), target);
    draft.builder.launch(rank, kernel);
    draft.builder.host(rank, HostOpKind::device_synchronize);
  }
  EXPECT_NEAR(run(draft.builder.finish(), machine).result.makespan_ns, 2 * kNicNs, kExact);
}

}  // namespace
}  // namespace tritax
