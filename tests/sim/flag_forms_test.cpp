// Signals that set their flag, and relaxed signals.
#include <gtest/gtest.h>

#include "hand_machine.hpp"
#include "model/schedule/check.hpp"
#include "sim/functional.hpp"

namespace tritax {
namespace {

using hand::Draft;
using hand::kExact;
using hand::kTileBytes;
using hand::run;

// A store to a peer takes 1500 ns; a signal behind it is raised then, or at once.
TEST(FlagForms, ARelaxedSignalDoesNotWaitForTheStoreBefore) {
  for (const bool async_store : {false, true}) {
    for (const MemoryOrder order : {MemoryOrder::release, MemoryOrder::relaxed}) {
      Machine machine = hand::machine(2);
      machine.gpu.async_tile_store = async_store;
      machine.gpu.release_ns = 10;
      machine.fabric.link_raw_gb_per_s = kTileBytes / 1500;
      Draft draft(2);
      const std::int16_t flag = draft.builder.flags("ready", 1);
      const auto sends = draft.gemm_kernel("sends", 0);
      draft.builder.workgroup(sends);
      draft.matmul(0);  // a step: 1000
      draft.builder.store(draft.c, Draft::tile(0), 1);
      draft.builder.signal(flag, 0, 1, 1, Scope::system, LockProtocol::load_store, order);
      const auto waits = draft.data_kernel("waits", 1);
      draft.builder.workgroup(waits);
      draft.wait(flag, 0);
      draft.builder.launch(0, sends);
      draft.builder.launch(1, waits);
      draft.builder.host(0, HostOpKind::device_synchronize);
      draft.builder.host(1, HostOpKind::device_synchronize);
      const auto out = run(draft.builder.finish(), machine);
      const bool release = order == MemoryOrder::release;
      EXPECT_NEAR((out.seen.ops.at({1, 0, 0}).end_ns), release ? 2510 : 1000, kExact);
      EXPECT_NEAR(out.seen.kernels.at(0).end_ns, release ? 2510 : 2500, kExact);
    }
  }
}

// Half of what crosses the link is flags, and the signal they stand for waits for no release.
TEST(FlagForms, FlagsInTheWordsOfTheDataTakeLinksAndNoRelease) {
  for (const double share : {1.0, 0.5}) {
    Machine machine = hand::machine(2);
    machine.gpu.release_ns = 10;
    machine.fabric.link_raw_gb_per_s = kTileBytes / 1500;
    Draft draft(2);
    const std::int16_t flag = draft.builder.flags("ready", 1);
    const auto sends = draft.gemm_kernel("sends", 0);
    draft.builder.workgroup(sends);
    draft.matmul(0);  // a step: 1000
    draft.builder.store(draft.c, Draft::tile(0), 1);
    draft.builder.signal(flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
    const auto waits = draft.data_kernel("waits", 1);
    draft.builder.workgroup(waits);
    draft.wait(flag, 0);
    draft.builder.launch(0, sends);
    draft.builder.launch(1, waits);
    draft.builder.host(0, HostOpKind::device_synchronize);
    draft.builder.host(1, HostOpKind::device_synchronize);
    Schedule schedule = draft.builder.finish();
    schedule.kernels[static_cast<std::size_t>(sends)].payload_share = share;
    const auto out = run(schedule, machine);
    EXPECT_NEAR((out.seen.ops.at({1, 0, 0}).end_ns), share < 1 ? 1000 + 3000 : 1000 + 1500 + 10, kExact);
  }
}

// Rank 0 sends the tiles of A one by one through one tile of rank 1, which empties it and sets the flag back.
Schedule mailbox(int rounds, MemoryOrder order) {
  ScheduleBuilder builder("mailbox", 2);
  const std::int16_t a = builder.buffer({"A", DType::fp16, 4 * rounds, 4, 4, 4});
  const std::int16_t box = builder.buffer({"box", DType::fp16, 4, 4, 4, 4});
  const std::int16_t c = builder.buffer({"C", DType::fp16, 4 * rounds, 4, 4, 4});
  const std::int16_t flags = builder.flags("flags", 2);
  builder.input(builder.whole(a, 0));
  builder.expect_copy(builder.whole(c, 1), builder.whole(a, 0));
  Kernel kernel;
  kernel.name = "sends";
  const auto sends = builder.kernel(kernel);
  builder.workgroup(sends);
  for (int i = 0; i < rounds; ++i) {
    builder.copy(box, {0, 0, 4, 4}, 1, a, 4 * i, 0, 0);
    builder.signal(flags, 0, 1, 1, Scope::system, LockProtocol::load_store, order);
    builder.wait(flags, 1, i + 1, Scope::system, LockProtocol::load_store);
  }
  kernel.name = "empties";
  kernel.rank = 1;
  const auto empties = builder.kernel(kernel);
  builder.workgroup(empties);
  for (int i = 0; i < rounds; ++i) {
    builder.wait(flags, 0, 1, Scope::system, LockProtocol::load_store);
    builder.copy(c, {4 * i, 0, 4, 4}, 1, box, 0, 0, 1);
    builder.set_flag(flags, 0, 0, 1, Scope::system, LockProtocol::load_store);
    builder.signal(flags, 1, 1, 0, Scope::system, LockProtocol::load_store);
  }
  builder.launch(0, sends);
  builder.launch(1, empties);
  return builder.finish();
}

TEST(FlagForms, AFlagThatIsSetBackCanBeUsedAgain) {
  const Schedule schedule = mailbox(5, MemoryOrder::release);
  require_sound(check_schedule(schedule), "mailbox");
  require_sound(check_schedule_on(schedule, hand::machine(2)), "mailbox");
  const FunctionalResult result = execute_functionally(schedule, hand::machine(2), 1);
  EXPECT_TRUE(result.stale_reads.empty());
  EXPECT_EQ(result.max_relative_error, 0);
}

TEST(FlagForms, ExecutionFindsWhatARelaxedSignalDoesNotPublish) {
  Machine machine = hand::machine(2);
  machine.fabric.link_raw_gb_per_s = 0.1;  // the signal comes before the data
  const FunctionalResult result = execute_functionally(mailbox(2, MemoryOrder::relaxed), machine, 1);
  ASSERT_FALSE(result.stale_reads.empty());
  EXPECT_NE(result.stale_reads[0].find("kernel 'empties' rank 1 workgroup 0 operation 1 (copy)"),
            std::string::npos)
      << result.stale_reads[0];
}

}  // namespace
}  // namespace tritax
