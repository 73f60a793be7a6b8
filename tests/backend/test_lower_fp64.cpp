// Lowering of products in fp64.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "one_kernel.hpp"

namespace tritax::gpu {
namespace {

// There is no wgmma of fp64: the waves of its kernel load, and store their tiles themselves.
TEST(LowerFp64, NeedsNoCopyEngine) {
  OneKernel one(DType::fp64);
  one.builder.matmul(one.a, one.b, {0, 0, 128, 128}, 1, 256);  // K may begin anywhere
  one.builder.store(one.c, {0, 0, 128, 128}, 0);
  one.builder.signal(one.flag, 0, 1, 0, Scope::gpu, LockProtocol::load_store);
  const RankProgram program = one.lowered(device_with_copy_engine());
  EXPECT_TRUE(program.tensor_maps.empty());
  EXPECT_EQ(program.kernels[0].threads, 256);
  EXPECT_EQ(program.ops[0].tensor_map, -1);
  EXPECT_EQ(program.ops[0].width, 8);
  EXPECT_EQ(program.ops[1].bits & kTensor, 0);
  EXPECT_NE(program.ops[2].bits & kTeamWrites, 0);
}

// Two numbers at a time need 16 bytes: one at a time where either operand, or the result, begins at an odd
// column.
TEST(LowerFp64, TakesNumbersOneByOneWhereATileBeginsAtAnOddColumn) {
  const auto widths = [](std::int32_t col, std::int32_t k_begin) {
    OneKernel one(DType::fp64);
    one.builder.matmul(one.a, one.b, {0, col, 128, 77}, k_begin, 256);
    one.builder.store(one.c, {0, col, 128, 77}, 1);
    one.builder.atomic_add(one.c, {128, col, 128, 77}, 1);
    const RankProgram program = one.lowered(device_with_copy_engine());
    std::vector<int> found;
    for (const DeviceOp& op : program.ops) found.push_back(op.width);
    return found;
  };
  EXPECT_EQ(widths(0, 0), (std::vector<int>{16, 16, 16}));
  EXPECT_EQ(widths(0, 33), (std::vector<int>{8, 16, 16}));
  EXPECT_EQ(widths(77, 0), (std::vector<int>{8, 8, 8}));
  EXPECT_EQ(widths(154, 0), (std::vector<int>{16, 16, 16}));
}

TEST(LowerFp64, AddsToMemoryWhatTheNextSignalCovers) {
  OneKernel one(DType::fp64);
  one.builder.matmul(one.a, one.b, {0, 0, 128, 128}, 0, 256);
  one.builder.atomic_add(one.c, {128, 64, 100, 77}, 1);
  one.builder.signal(one.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  const RankProgram program = one.lowered(device_with_copy_engine());
  const HeapLayout heap = lay_out_heap(one.schedule, device_with_copy_engine());
  const DeviceOp& add = program.ops[1];
  EXPECT_EQ(static_cast<OpKind>(add.kind), OpKind::atomic_add);
  EXPECT_EQ(static_cast<DType>(add.dtype), DType::fp64);
  EXPECT_EQ(add.rows, 100);
  EXPECT_EQ(add.cols, 77);
  EXPECT_EQ(add.pitch, 256 * 8);
  EXPECT_EQ(add.address, kHeapOfRank1 + heap.buffers[2].offset + 128U * 2048U + 64U * 8U);
  EXPECT_TRUE(has(program.ops[2], kTeamWrites));
}

TEST(LowerFp64, RefusesOtherTypesBesideItAndSumsWithoutIt) {
  OneKernel mixed(DType::fp64);
  const std::int16_t narrow = mixed.builder.buffer({"narrow", DType::fp32, 128, 128, 128, 128});
  mixed.builder.matmul(mixed.a, mixed.b, {0, 0, 128, 128}, 0, 256);
  mixed.builder.store(narrow, {0, 0, 128, 128}, 0);
  EXPECT_NE(
      mixed.refusal(device_with_copy_engine()).find("fp32 data in a kernel of fp64 tiles; fp64 is possible"),
      std::string::npos);
  OneKernel vectors(DType::fp64);
  vectors.builder.load(vectors.a, {0, 0, 16, 16}, 0);
  vectors.builder.store(vectors.c, {0, 0, 16, 16}, 0);
  EXPECT_NE(vectors.refusal(device_with_copy_engine()).find("does not multiply in fp64"), std::string::npos);
}

}  // namespace
}  // namespace tritax::gpu
