// Transfers that share a port, a link or a memory: their slowdown, and its place in the account.
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

TEST(Incast, OfSevenGpusIntoOneSharesItsPortAndLeavesAFreePairAlone) {
  Machine machine = hand::machine(10);
  machine.fabric.link_raw_gb_per_s = 50;
  machine.fabric.store_ingress_gb_per_s = 50;
  Draft draft(10);
  std::vector<std::int32_t> kernels;
  const auto send = [&](int from, int to) {
    kernels.push_back(draft.data_kernel("send", from));
    draft.builder.workgroup(kernels.back());
    draft.builder.store(draft.c, Draft::tile(from), to);
    draft.builder.launch(from, kernels.back());
    draft.builder.host(from, HostOpKind::device_synchronize);
  };
  for (int from = 1; from < 8; ++from) send(from, 0);
  send(8, 9);
  const Observed out = run(draft.builder.finish(), machine);
  for (std::uint32_t k = 0; k < 7; ++k) {
    EXPECT_NEAR(out.seen.kernels.at(k).length_ns(), 7 * kTileBytes / 50, kExact);
  }
  EXPECT_NEAR(out.seen.kernels.at(7).length_ns(), kTileBytes / 50, kExact);
}

// Who adds into the memory of one GPU shares its atomic units, whatever else memory and links could carry.
TEST(AtomicUnits, AreSharedByAllWhoAddIntoTheMemoryOfAGpu) {
  Machine machine = hand::machine(2);
  machine.gpu.atomic_gb_per_s = 20;
  machine.fabric.link_raw_gb_per_s = 1e6;
  machine.gpu.cu_remote_atomic_gb_per_s = machine.gpu.cu_store_gb_per_s = 1e4;
  Draft draft(2);
  for (int from = 0; from < 2; ++from) {
    const std::int32_t kernel = draft.data_kernel("add", from);
    draft.builder.workgroup(kernel);
    draft.builder.atomic_add(draft.c, Draft::tile(from), 0);
    draft.builder.launch(from, kernel);
    draft.builder.host(from, HostOpKind::device_synchronize);
  }
  EXPECT_NEAR(run(draft.builder.finish(), machine).result.makespan_ns, 2 * kTileBytes / 20, kExact);
}

// The link is free again when the larger one ends.
TEST(Contention, IsNotWhatATransferWaitedForItsLink) {
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = 15;
  machine.gpu.cu_remote_store_gb_per_s = 10;
  Draft draft(2);
  const auto kernel = draft.data_kernel("send", 0);
  draft.builder.workgroup(kernel);
  draft.builder.store(draft.c, Draft::tile(0), 1);
  draft.builder.workgroup(kernel);
  draft.builder.store(draft.c, {hand::kTile, 0, hand::kTile / 2, hand::kTile}, 1);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), machine);
  EXPECT_NEAR(out.result.makespan_ns, kTileBytes / 15 + kTileBytes / 2 / 10, kExact);
  EXPECT_NEAR(out.result.account.wire_ns, out.result.makespan_ns, kExact);
}

// Matmuls on `workgroups` compute units, in turn of the two dies, with `l2_gb_per_s` for a die; one asks for
// 16.384 GB/s.
hand::Recorder matmuls_behind_l2(int workgroups, double l2_gb_per_s) {
  Machine machine = hand::machine();
  machine.gpu.l2_gb_per_s = l2_gb_per_s;
  Draft draft(1);
  const auto kernel = draft.gemm_kernel("gemm", 0);
  for (std::int32_t w = 0; w < workgroups; ++w) {
    draft.builder.workgroup(kernel);
    draft.matmul(w);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return run(draft.builder.finish(), machine).seen;
}

TEST(L2Port, HoldsBackTheMatmulsOfItsOwnDieOnly) {
  const double asked_gb_per_s = 2 * kTileBytes / hand::kStepNs;
  auto seen = matmuls_behind_l2(3, 20);  // the first and the third on one die
  EXPECT_NEAR((seen.ops[{0, 0, 0}].length_ns()), 2 * hand::kStepNs * asked_gb_per_s / 20, kExact);
  EXPECT_NEAR((seen.ops[{0, 1, 0}].length_ns()), hand::kStepNs, kExact);
  EXPECT_NEAR((seen.ops[{0, 2, 0}].length_ns()), 2 * hand::kStepNs * asked_gb_per_s / 20, kExact);
}

TEST(L2Port, ThatAWholeDieCannotFillHoldsNobodyBack) {
  const double die_gb_per_s = 4 * 2 * kTileBytes / hand::kStepNs;
  for (const double share : {0.5, 0.999, 1.0, 1.0005, 1.01, 2.0}) {
    auto seen = matmuls_behind_l2(8, share * die_gb_per_s);
    for (std::uint32_t w = 0; w < 8; ++w) {
      EXPECT_NEAR((seen.ops[{0, w, 0}].length_ns()), hand::kStepNs / std::min(1.0, share), kExact) << share;
    }
  }
}

TEST(Contention, IsWhatOthersAddToATransferBetweenLocalMemories) {
  Machine machine = hand::machine();
  machine.gpu.hbm_gb_per_s = 100;
  machine.gpu.cu_load_gb_per_s = 80;
  Draft draft(1);
  const auto kernel = draft.data_kernel("load", 0);
  for (int w = 0; w < 4; ++w) {
    draft.builder.workgroup(kernel);
    draft.builder.load(draft.a, Draft::tile(w), 0);
  }
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), machine);
  EXPECT_NEAR(out.result.makespan_ns, 4 * kTileBytes / 100, kExact);
  EXPECT_NEAR(out.result.account.memory_ns, kTileBytes / 80, kExact);
  EXPECT_NEAR(out.result.account.contention_ns, 4 * kTileBytes / 100 - kTileBytes / 80, kExact);
  EXPECT_NEAR(out.result.hbm_bytes, 4 * kTileBytes, kExact);
}

}  // namespace
}  // namespace tritax
