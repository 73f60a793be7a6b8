// Signals and claims in the GPU's program, and the items that are claimed.
#include <gtest/gtest.h>

#include "one_kernel.hpp"

namespace tritax::gpu {
namespace {

TEST(Lowering, ASignalSaysWhetherItCoversStoresOfComputingThreads) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.copy(test.c, {128, 0, 128, 128}, 1, test.a, 0, 0, 0);
  test.builder.signal(test.flag, 1, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.signal(test.flag, 2, 1, 1, Scope::system, LockProtocol::load_store);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_FALSE(has(program.ops[2], kTeamWrites));
  EXPECT_TRUE(has(program.ops[4], kTeamWrites));
  EXPECT_FALSE(has(program.ops[5], kTeamWrites));
}

TEST(Lowering, OnlyACounterWithOneSignalMayBeSetByAPlainStore) {
  OneKernel test;
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.signal(test.flag, 1, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.signal(test.flag, 1, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.signal(test.flag, 1, 1, 0, Scope::system, LockProtocol::load_store);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_TRUE(has(program.ops[0], kAlone));
  EXPECT_FALSE(has(program.ops[1], kAlone));
  EXPECT_FALSE(has(program.ops[2], kAlone));
  EXPECT_TRUE(has(program.ops[3], kAlone));
}

TEST(Lowering, ASignalThatSetsItsCounterStoresWhoeverElseChangesIt) {
  OneKernel test;
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.set_flag(test.flag, 0, 0, 1, Scope::system, LockProtocol::load_store);
  test.builder.set_flag(test.flag, 0, 3, 1, Scope::system, LockProtocol::compare_and_swap);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_FALSE(has(program.ops[0], kAlone));
  EXPECT_TRUE(has(program.ops[1], kAlone));
  EXPECT_EQ(program.ops[1].value, 0);
  EXPECT_TRUE(has(program.ops[2], kAlone));
  EXPECT_EQ(static_cast<LockProtocol>(program.ops[2].protocol),
            LockProtocol::exchange);  // it holds more than 0
}

TEST(Lowering, ARelaxedSignalCoversNothingAndLeavesItToTheNext) {
  OneKernel test;
  test.builder.copy(test.c, {128, 0, 128, 128}, 1, test.a, 0, 0, 0);
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store, MemoryOrder::relaxed);
  test.builder.signal(test.flag, 1, 1, 1, Scope::system, LockProtocol::load_store);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_EQ(program.ops[1].relaxed, 1);
  EXPECT_FALSE(has(program.ops[1], kTeamWrites));
  EXPECT_EQ(program.ops[2].relaxed, 0);
  EXPECT_TRUE(has(program.ops[2], kTeamWrites));
}

TEST(Lowering, AKernelThatIsLaunchedTwiceHasNoLoneSignals) {
  OneKernel test;
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.launch(0, test.kernel);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_FALSE(has(program.ops[0], kAlone));
}

void add_group_of_waits(OneKernel& test) {
  test.builder.together([&] {
    for (std::int32_t i = 0; i < 3; ++i)
      test.builder.wait(test.flag, i, 1, Scope::system, LockProtocol::load_store);
  });
}

TEST(Lowering, AKernelWithoutMatrixCoresCarriesOutAGroupAtOnce) {
  OneKernel test;
  Kernel plain;
  plain.name = "plain";
  plain.resources.threads = 256;
  const std::int32_t kernel = test.builder.kernel(std::move(plain));
  test.builder.workgroup(kernel);
  test.builder.launch(0, kernel);
  add_group_of_waits(test);
  test.builder.copy(test.c, {128, 0, 128, 128}, 0, test.a, 0, 0, 0);
  test.builder.together([&] {
    test.builder.load(test.a, {0, 0, 16, 128}, 0);
    test.builder.reduce(test.c, {128, 0, 16, 128}, 0);  // what it has just copied
  });
  const RankProgram program = test.lowered(device_with_copy_engine());
  ASSERT_EQ(program.ops.size(), 6U);
  EXPECT_EQ(program.ops[0].together, 2);
  EXPECT_EQ(program.ops[3].together, 0);
  EXPECT_EQ(program.ops[4].together, 1);
  EXPECT_TRUE(has(program.ops[4], kJoin))
      << "all waves meet before the first of a group whose second needs it";
}

TEST(Lowering, AKernelWithMatrixCoresRunsAGroupOneOperationAfterTheOther) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  add_group_of_waits(test);
  const RankProgram program = test.lowered(device_with_copy_engine());
  for (const DeviceOp& op : program.ops) EXPECT_EQ(op.together, 0);
}

// Adds the sum of two ranks' tiles to an accumulator, and stores it to both, by the switch.
void add_sum_in_switch(OneKernel& test, const Rect& rect) {
  Kernel plain;
  plain.name = "plain";
  plain.resources.threads = 256;
  const std::int32_t kernel = test.builder.kernel(std::move(plain));
  test.builder.workgroup(kernel);
  test.builder.launch(0, kernel);
  test.builder.multimem([&] {
    test.builder.load(test.a, rect, 0);
    test.builder.reduce(test.a, rect, 1);
  });
  test.builder.multimem([&] {
    test.builder.store(test.c, rect, 0);
    test.builder.store(test.c, rect, 1);
  });
}

TEST(Lowering, AGroupOfTheSwitchIsOneOperationAtTheAddressOfAllHeaps) {
  OneKernel test;
  add_sum_in_switch(test, {16, 64, 16, 128});
  const RankProgram program = test.lowered(device_with_copy_engine(), 0, kMulticast);
  ASSERT_EQ(program.ops.size(), 4U);
  for (const std::size_t first : {0U, 2U}) {
    EXPECT_EQ(program.ops[first].multimem, 1);
    EXPECT_EQ(program.ops[first].together, 1);
    EXPECT_EQ(program.ops[first + 1].multimem, 0);
    // The same place in a heap as on rank 1, which the group names too.
    EXPECT_EQ(program.ops[first].address - kMulticast, program.ops[first + 1].address - kHeapOfRank1);
  }
  EXPECT_TRUE(has(program.ops[0], kFresh));
}

TEST(Lowering, WithoutAMulticastAddressTheSwitchIsReplacedPeerByPeer) {
  OneKernel test;
  add_sum_in_switch(test, {16, 64, 16, 128});
  const RankProgram program = test.lowered(device_with_copy_engine());
  for (const DeviceOp& op : program.ops) EXPECT_EQ(op.multimem, 0);
}

TEST(Lowering, TheSwitchMovesSixteenBytes) {
  for (const Rect& rect : {Rect{0, 0, 16, 100}, Rect{0, 4, 16, 128}}) {
    OneKernel test;
    add_sum_in_switch(test, rect);
    const std::string said = test.refusal(device_with_copy_engine(), kMulticast);
    EXPECT_NE(said.find("is multimem, with " + std::to_string(rect.cols) + " columns of bf16"),
              std::string::npos)
        << said;
  }
  OneKernel test(DType::fp8);
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.multimem([&] {
    test.builder.store(test.c, kTile, 0);
    test.builder.store(test.c, kTile, 1);
  });
  const std::string said = test.refusal(device_with_copy_engine(), kMulticast);
  EXPECT_NE(said.find("in kernels that do not multiply"), std::string::npos) << said;
}

// A workgroup whose two items compute tile 0 and load `loaded`; then it stores a tile of its own.
RankProgram two_items(Rect loaded) {
  OneKernel test;
  test.builder.claim_items(test.flag, 1, 0, 2);
  test.builder.matmul(test.a, test.b, {128, 0, 128, 128}, 0, 256);
  test.builder.store(test.c, {128, 0, 128, 128}, 0);
  test.builder.item(test.kernel);
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.item(test.kernel);
  test.builder.load(test.c, loaded, 1);
  test.builder.atomic_add(test.c, {128, 128, 128, 128}, 0);
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  return test.lowered(device_with_copy_engine());
}

TEST(Lowering, AnItemEndsWithAClaimOfTheNext) {
  const RankProgram program = two_items(kTile);
  ASSERT_EQ(program.items.size(), 2U);
  EXPECT_EQ(program.workgroups[0].op_count, 3U);
  EXPECT_EQ(program.items[0].first_op, 3U);
  EXPECT_EQ(program.items[0].op_count, 3U);
  EXPECT_EQ(program.items[1].first_op, 6U);
  EXPECT_EQ(program.items[1].op_count, 4U);
  const DeviceOp& own = program.ops[0];
  EXPECT_EQ(own.row, 1);  // behind the claim
  EXPECT_EQ(own.col, 3);
  for (const std::size_t last : {5U, 9U}) {
    const DeviceOp& claim = program.ops[last];
    EXPECT_EQ(static_cast<OpKind>(claim.kind), OpKind::claim);
    EXPECT_EQ(claim.address, own.address);
    EXPECT_EQ(claim.k_begin, 0);
    EXPECT_EQ(claim.k_end, 2);
    EXPECT_EQ(claim.row, -1);
    EXPECT_EQ(claim.number, last == 5 ? 8 : 9);  // behind the eight operations of the schedule
  }
  for (const std::size_t matmul : {1U, 3U}) EXPECT_TRUE(has(program.ops[matmul], kFresh));
  // Another item may have left what its threads stored.
  EXPECT_TRUE(has(program.ops[8], kTeamWrites));
}

TEST(Lowering, ProgramsThatTouchTheSameMemoryMeetInBetween) {
  // Of rank 1 nothing is written here; of rank 0 tile 0.
  for (const bool written : {false, true}) {
    OneKernel test;
    test.builder.claim_items(test.flag, 1, 0, 2);
    test.builder.item(test.kernel);
    test.builder.matmul(test.a, test.b, kTile, 0, 256);
    test.builder.store(test.c, kTile, 0);
    test.builder.item(test.kernel);
    test.builder.load(test.c, {64, 64, 128, 128}, written ? 0 : 1);
    test.builder.store(test.c, {128, 128, 128, 128}, 1);
    const RankProgram program = test.lowered(device_with_copy_engine());
    EXPECT_EQ(has(program.ops[1], kJoin), written);  // the matmul, which is the first to touch memory
    EXPECT_EQ(has(program.ops[4], kJoin), written);
    EXPECT_FALSE(has(program.ops[5], kJoin) && written);
  }
}

TEST(Lowering, SaysWhichOperationANumberIs) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.wait(test.flag, 3, 2, Scope::gpu, LockProtocol::load_store);
  const Schedule schedule = test.builder.finish();
  EXPECT_EQ(describe_operation(schedule, 1),
            "kernel 'gemm' rank 0 workgroup 0 operation 1 (wait), flag 'ready'[3] >= 2");
  OneKernel queue;
  queue.builder.claim_items(queue.flag, 0, 0, 1);
  queue.builder.item(queue.kernel);
  queue.builder.barrier();
  EXPECT_EQ(describe_operation(queue.builder.finish(), 1),
            "kernel 'gemm' rank 0 item 0 operation 0 (barrier)");
}

}  // namespace
}  // namespace tritax::gpu
