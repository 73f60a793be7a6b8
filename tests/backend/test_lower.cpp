// Lowering of tiles: what the accumulator holds, where they lie, who has to meet before them, what is
// refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "one_kernel.hpp"

namespace tritax::gpu {
namespace {

TEST(Lowering, TheFirstMatmulStartsFromZeroAndSoDoesOneAfterAStore) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 128);
  test.builder.matmul(test.a, test.b, kTile, 128, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.matmul(test.a, test.b, {128, 0, 128, 128}, 0, 256);
  test.builder.store(test.c, {128, 0, 128, 128}, 0);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_TRUE(has(program.ops[0], kFresh));
  EXPECT_FALSE(has(program.ops[1], kFresh));
  EXPECT_TRUE(has(program.ops[3], kFresh));
}

TEST(Lowering, AMatmulReadsAOfAPeerInThePeersHeap) {
  for (const DeviceTraits& device : {device_with_copy_engine(), plain_device()}) {
    OneKernel own, peers;
    own.builder.matmul(own.a, own.b, kTile, 64, 256);
    own.builder.store(own.c, kTile, 0);
    peers.builder.matmul_of(1, peers.a, peers.b, kTile, 64, 256);
    peers.builder.store(peers.c, kTile, 0);
    const RankProgram of_own = own.lowered(device), of_peer = peers.lowered(device);
    EXPECT_EQ(of_peer.ops[0].address - of_own.ops[0].address, kHeapOfRank1 - kHeapOfRank0);
    EXPECT_EQ(of_peer.ops[0].source, of_own.ops[0].source);  // B
    EXPECT_EQ(of_peer.ops[0].pitch, of_own.ops[0].pitch);
    EXPECT_EQ(of_peer.ops[1].address, of_own.ops[1].address);
    if (!device.tensor_maps) continue;
    const auto map = [](const RankProgram& program) {
      return program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map)].address;
    };
    EXPECT_EQ(map(of_peer) - map(of_own), kHeapOfRank1 - kHeapOfRank0);
  }
}

TEST(Lowering, ATileIsConvertedOnceForAllRanksItGoesTo) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.store(test.c, kTile, 1);
  test.builder.matmul(test.a, test.b, {0, 128, 128, 128}, 0, 256);
  test.builder.store(test.c, {0, 128, 128, 128}, 1);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_FALSE(has(program.ops[1], kStaged));
  EXPECT_TRUE(has(program.ops[2], kStaged));
  EXPECT_FALSE(has(program.ops[4], kStaged));
  EXPECT_TRUE(has(program.ops[1], kKeep));  // the next store needs the converted tile
  EXPECT_FALSE(has(program.ops[2], kKeep));
  EXPECT_FALSE(has(program.ops[4], kKeep));
}

TEST(Lowering, StoresToPeersAreMarkedSoThatTheyCanBePaced) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.store(test.c, kTile, 1);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_FALSE(has(program.ops[1], kRemote));
  EXPECT_TRUE(has(program.ops[2], kRemote));
}

TEST(Lowering, WaveSchedulesAreRefusedInWords) {
  for (const Pipeline pipeline : {Pipeline::ping_pong, Pipeline::interleaved, Pipeline::producer_consumer}) {
    OneKernel test;
    test.builder.matmul(test.a, test.b, kTile, 0, 256);
    test.schedule = test.builder.finish();
    test.schedule.kernels[0].tile.pipeline = pipeline;
    const HeapLayout heap = lay_out_heap(test.schedule, plain_device());
    try {
      lower(test.schedule, heap, plain_device(), 0, {kHeapOfRank0, kHeapOfRank1});
      ADD_FAILURE() << "taken";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("serial and overlapped are possible"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Lowering, TheLastOfARunOfStoresOrCopiesIsMarkedForTheStampOfItsDrain) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 128);
  test.builder.store(test.c, kTile, 0);
  test.builder.store(test.c, kTile, 1);
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.store(test.c, kTile, 0);
  test.builder.copy(test.c, {0, 128, 128, 128}, 1, test.c, 0, 128, 0);
  const RankProgram program = test.lowered(device_with_copy_engine());
  std::vector<int> ends;
  for (const DeviceOp& op : program.ops) ends.push_back(op.ends_run);
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 1, 0, 1, 1}));
}

TEST(Lowering, AddressesNameTheRankTheRowAndTheColumn) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, {128, 64, 128, 128}, 1);
  test.builder.signal(test.flag, 2, 1, 1, Scope::system, LockProtocol::load_store);
  const RankProgram program = test.lowered(device_with_copy_engine());
  const HeapLayout heap = lay_out_heap(test.schedule, device_with_copy_engine());
  EXPECT_EQ(program.ops[1].address, kHeapOfRank1 + heap.buffers[2].offset + 128U * 512U + 64U * 2U);
  EXPECT_EQ(program.ops[1].pitch, 512);
  EXPECT_EQ(program.ops[1].width, 16);
  EXPECT_EQ(program.ops[2].address, kHeapOfRank1 + heap.flag_offsets[0] + 8U);
}

TEST(Lowering, OperationsOnTheSameMemoryAreKeptApart) {
  OneKernel test;
  test.builder.copy(test.a, kTile, 0, test.c, 0, 0, 0);
  test.builder.matmul(test.a, test.b, kTile, 0, 256);               // reads what the copy wrote
  test.builder.matmul(test.a, test.b, {128, 0, 128, 128}, 0, 256);  // other rows
  test.builder.store(test.c, {128, 0, 128, 128}, 0);
  test.builder.copy(test.c, kTile, 1, test.c, 128, 0, 0);  // reads what the store wrote
  test.builder.copy(test.c, {128, 128, 128, 128}, 1, test.c, 0, 128, 0);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_TRUE(has(program.ops[1], kJoin));
  EXPECT_FALSE(has(program.ops[2], kJoin));
  EXPECT_TRUE(has(program.ops[4], kJoin));
  EXPECT_FALSE(has(program.ops[5], kJoin));
}

TEST(Lowering, SmallerTilesRunInTheSmallestKernelThatHoldsThem) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  Schedule schedule = test.builder.finish();
  schedule.kernels[0].tile.n = 64;
  const HeapLayout heap = lay_out_heap(schedule, plain_device());
  const DeviceTraits device = plain_device();
  const RankProgram program = lower(schedule, heap, device, 0, {0, 0});
  EXPECT_EQ(program.kernels[0].tile->n, 128);
}

TEST(Lowering, RefusesWhatTheDeviceLacksAndNamesThePlace) {
  const auto expect = [](OneKernel& test, const std::string& part,
                         const DeviceTraits& device = device_with_copy_engine()) {
    const std::string message = test.refusal(device);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  OneKernel fp16(DType::fp16);
  fp16.builder.matmul(fp16.a, fp16.b, kTile, 0, 256);
  expect(fp16,
         "kernel 'gemm': 128x128 fp16 tiles fit no matmul kernel on test device; it has none for this dtype");

  OneKernel misplaced;
  misplaced.builder.matmul(misplaced.a, misplaced.b, {0, 3, 128, 128}, 0, 256);
  expect(misplaced,
         "kernel 'gemm' rank 0 workgroup 0 operation 0 (matmul): place in B starts at element 3; the copy "
         "engine of test device takes multiples of 8");

  OneKernel empty;
  empty.builder.matmul(empty.a, empty.b, kTile, 0, 256);
  empty.builder.store(empty.c, kTile, 0);
  Schedule without = empty.builder.finish();
  without.ops.erase(without.ops.begin());
  without.kernels[0].workgroups[0].op_count = 1;
  EXPECT_THROW(lower(without, lay_out_heap(without, plain_device()), plain_device(), 0, {0, 0}), UserError);

  OneKernel written(DType::fp8);
  written.builder.matmul(written.a, written.b, kTile, 0, 256);
  written.builder.store(written.b, kTile, 0);
  expect(written, "operation 1 (store): writes to an fp8 buffer that matmul reads as B");

  OneKernel atomic(DType::fp8);
  atomic.builder.matmul(atomic.a, atomic.b, kTile, 0, 256);
  atomic.builder.atomic_add(atomic.c, kTile, 0);
  expect(atomic, "GPUs have no atomic addition of fp8 values");

  OneKernel carried;
  carried.builder.matmul(carried.a, carried.b, kTile, 0, 256);
  carried.builder.claim(carried.flag, 0, 1, 1);
  carried.builder.store(carried.c, kTile, 0);
  expect(carried, "no claim may lie between matmul and store");
}

TEST(SharedRoom, IsRefusedBeyondWhatTheDeviceGives) {
  require_shared_room("merge_path", 232448, 232448, "NVIDIA H200");
  try {
    require_shared_room("merge_path", 263680, 232448, "NVIDIA H200");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "kernel 'merge_path': a workgroup asks for 263680 bytes of LDS, NVIDIA H200 gives it at most "
        "232448; use fewer threads or items, or smaller tiles");
  }
}

}  // namespace
}  // namespace tritax::gpu
