// What compute units issue follows their clock; loads queue behind stores; memory writes cost more than
// reads.
#include <gtest/gtest.h>

#include "hand_machine.hpp"
#include "model/machine/machine.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kStepNs;
using hand::kTileBytes;
using hand::Observed;
using hand::run;

constexpr double kCopyGbPerS = 8;
constexpr double kCopyNs = kTileBytes / kCopyGbPerS;

// Half the boost clock as soon as one matrix core works.
Machine slowed_machine() {
  Machine machine = hand::machine();
  MatrixRate& rate = machine.gpu.matrix[static_cast<std::size_t>(DType::fp16)];
  rate.load_clock_ghz = rate.light_clock_ghz = 0.5;
  machine.gpu.cu_load_gb_per_s = machine.gpu.cu_store_gb_per_s = kCopyGbPerS;
  return machine;
}

void copy(Draft& draft, std::int32_t row) {
  draft.builder.copy(draft.c, Draft::tile(row), 0, draft.a, Draft::tile(row).row, 0, 0);
}

TEST(Clock, OfCopiesIsThatOfTheMatrixCoresWhileTheseWork) {
  Draft draft(1);
  const auto gemm = draft.gemm_kernel("gemm", 0);
  draft.builder.workgroup(gemm);
  for (int t = 0; t < 4; ++t) draft.matmul(t);
  const auto beside = draft.data_kernel("beside", 0);
  draft.builder.workgroup(beside);
  copy(draft, 10);
  copy(draft, 11);
  const auto after = draft.data_kernel("after", 0);
  draft.builder.workgroup(after);
  copy(draft, 12);
  draft.builder.launch(0, gemm, 0);
  draft.builder.launch(0, beside, 1);
  draft.builder.launch(0, after, 0);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Observed out = run(draft.builder.finish(), slowed_machine());
  EXPECT_NEAR(out.seen.kernels.at(0).length_ns(), 4 * kStepNs / 0.5, kExact);
  EXPECT_NEAR(out.seen.kernels.at(1).length_ns(), 2 * kCopyNs / 0.5, kExact);
  EXPECT_NEAR(out.seen.kernels.at(2).length_ns(), kCopyNs, kExact);
}

TEST(Clock, AfterLongLoadIsTheSustainedOne) {
  Machine machine = hand::machine();
  EXPECT_EQ(sustained(machine).gpu.rate(DType::fp16).load_clock_ghz, 1);  // none is known
  machine.gpu.matrix[static_cast<std::size_t>(DType::fp16)].sustained_clock_ghz = 0.8;
  EXPECT_EQ(sustained(machine).gpu.rate(DType::fp16).load_clock_ghz, 0.8);
  EXPECT_EQ(machine.gpu.rate(DType::fp16).load_clock_ghz, 1);
}

TEST(Poll, GoesOutBehindStoresWhereTheyShareAQueue) {
  Machine machine = slowed_machine();
  machine.gpu.poll_load_ns = 100;
  Draft draft(1);
  const auto flags = draft.builder.flags("set", 1);
  const auto set = draft.data_kernel("set", 0);
  draft.builder.workgroup(set);
  draft.signal(flags, 0, 0);
  const auto kernel = draft.data_kernel("copy", 0);
  draft.builder.workgroup(kernel);
  copy(draft, 0);
  draft.wait(flags, 0);
  draft.builder.launch(0, set);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  const Schedule schedule = draft.builder.finish();
  EXPECT_NEAR(run(schedule, machine).seen.kernels.at(1).length_ns(), kCopyNs, kExact);
  machine.gpu.loads_queue_behind_stores = true;
  EXPECT_NEAR(run(schedule, machine).seen.kernels.at(1).length_ns(), kCopyNs + 100, kExact);
  machine.gpu.loads_queue_behind_stores = false;
  machine.gpu.loads_wait_for_stores = true;
  EXPECT_NEAR(run(schedule, machine).seen.kernels.at(1).length_ns(), kCopyNs + 100, kExact);
}

double kernel_ns(OpKind kind, const Machine& machine) {
  Draft draft(1);
  const auto kernel = draft.data_kernel("move", 0);
  draft.builder.workgroup(kernel);
  if (kind == OpKind::load) draft.builder.load(draft.a, Draft::tile(0), 0);
  if (kind == OpKind::store) draft.builder.store(draft.c, Draft::tile(0), 0);
  if (kind == OpKind::copy) copy(draft, 0);
  draft.builder.launch(0, kernel);
  draft.builder.host(0, HostOpKind::device_synchronize);
  return run(draft.builder.finish(), machine).seen.kernels.at(0).length_ns();
}

TEST(Load, IntoAccumulatorsTakesTheirTimeBesides) {
  Machine machine = slowed_machine();
  EXPECT_NEAR(kernel_ns(OpKind::load, machine), kCopyNs, kExact);
  machine.gpu.accumulate_gb_per_s = 2 * kCopyGbPerS;
  EXPECT_NEAR(kernel_ns(OpKind::load, machine), 1.5 * kCopyNs, kExact);
  EXPECT_NEAR(kernel_ns(OpKind::copy, machine), kCopyNs, kExact);
}

TEST(Memory, WritesAtTheirOwnRate) {
  Machine machine = hand::machine();
  machine.gpu.hbm_gb_per_s = 10;
  machine.gpu.hbm_write_gb_per_s = 5;
  EXPECT_NEAR(kernel_ns(OpKind::load, machine), kTileBytes / 10, kExact);
  EXPECT_NEAR(kernel_ns(OpKind::store, machine), kTileBytes / 5, kExact);
  EXPECT_NEAR(kernel_ns(OpKind::copy, machine), kTileBytes / 10 + kTileBytes / 5, kExact);
}

}  // namespace
}  // namespace tritax
