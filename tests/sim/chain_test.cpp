// Transfers that follow each other take T · (S / B + L).
#include <gtest/gtest.h>

#include <algorithm>

#include "hand_machine.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kTileBytes;
using hand::Observed;
using hand::run;

TEST(Chain, OfStoresWithReleaseTakesBytesOverBandwidthPlusLatencyEach) {
  constexpr int kTransfers = 1024;
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = 50;
  machine.fabric.store_latency_ns = 500;
  Draft draft(2, kTransfers);
  const auto arrived = draft.builder.flags("arrived", kTransfers);
  const auto kernel = draft.data_kernel("send", 0);
  draft.builder.workgroup(kernel);
  for (int t = 0; t < kTransfers; ++t) {
    draft.builder.store(draft.c, Draft::tile(t), 1);
    draft.signal(arrived, t, 1);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), machine);
  EXPECT_NEAR(out.result.makespan_ns, kTransfers * (kTileBytes / 50 + 500), kExact);
  EXPECT_NEAR(out.result.account.wire_ns, out.result.makespan_ns, kExact);
}

TEST(Chain, OfStoresWithoutReleaseTakesBytesOverBandwidth) {
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = 64;
  machine.fabric.store_efficiency = 0.75;
  machine.fabric.store_latency_ns = 500;
  Draft draft(2);
  const auto kernel = draft.data_kernel("send", 0);
  draft.builder.workgroup(kernel);
  for (int t = 0; t < 10; ++t) draft.builder.store(draft.c, Draft::tile(t), 1);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  EXPECT_NEAR(run(draft.builder.finish(), machine).result.makespan_ns, 10 * kTileBytes / 48, kExact);
}

TEST(Chain, OfRemoteLoadsPaysTheRoundTripForEveryTile) {
  for (const double cu_limit : {20.0, hand::kUnlimited}) {
    Machine machine = hand::machine(2);
    machine.gpu.cu_remote_load_gb_per_s = cu_limit;
    machine.fabric.link_raw_gb_per_s = 50;
    machine.fabric.load_round_trip_ns = 660;
    Draft draft(2);
    const auto kernel = draft.data_kernel("fetch", 0);
    draft.builder.workgroup(kernel);
    for (int t = 0; t < 10; ++t) draft.builder.load(draft.a, Draft::tile(t), 1);
    draft.builder.launch(0, kernel);
    draft.builder.host(0, HostOpKind::device_synchronize);
    EXPECT_NEAR(run(draft.builder.finish(), machine).result.makespan_ns,
                10 * (kTileBytes / std::min(cu_limit, 50.0) + 660), kExact)
        << cu_limit;
  }
}

}  // namespace
}  // namespace tritax
