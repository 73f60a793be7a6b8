// Attention in the GPU's program: what attend, combine and the stores of partials become.
#include <gtest/gtest.h>

#include "backend_hip/lower.hpp"
#include "model/core/error.hpp"
#include "model/schedule/builder.hpp"

namespace tritax::gpu {
namespace {

DeviceTraits attending_device() {
  DeviceTraits device;
  device.name = "test device";
  for (const std::int32_t queries : {16, 64, 128}) {
    for (const std::int32_t depth : {64, 128})
      device.tiles.push_back({DType::fp16, queries, 64, 128, 100000, 0, 0, depth});
  }
  return device;
}

// Two query heads of 128 columns to one of keys; the second workgroup is another kernel's and combines.
struct Attending {
  ScheduleBuilder builder{"test", 1};
  std::int16_t q, k, v, o, partials;
  std::int32_t attends, combines;

  explicit Attending(DType dtype = DType::fp16, DType of_partials = DType::fp32, std::int32_t queries = 64) {
    q = builder.buffer({"Q", dtype, 64, 256, 64, 128});
    k = builder.buffer({"K", dtype, 512, 128, 64, 128});
    v = builder.buffer({"V", dtype, 512, 128, 64, 128});
    o = builder.buffer({"O", dtype, 64, 256, 64, 128});
    partials = builder.buffer({"partials", of_partials, 128, 129, 64, 129});
    Kernel kernel;
    kernel.name = "attend";
    kernel.tile = {queries, 64, 128, 4, Pipeline::overlapped};
    attends = builder.kernel(kernel);
    Kernel other;
    other.name = "combine";
    combines = builder.kernel(other);
  }

  std::vector<DeviceOp> lowered() {
    schedule = builder.finish();
    heap = lay_out_heap(schedule, device);
    program = lower(schedule, heap, device, 0, {1ULL << 40});
    return program.ops;
  }
  std::uint64_t at(std::int16_t buffer, std::int32_t row, std::int32_t col) const {
    const auto index = static_cast<std::size_t>(buffer);
    return (1ULL << 40) + place_of(heap.buffers[index], schedule.buffers[index].dtype, {row, col, 1, 1});
  }
  std::string refusal() {
    try {
      lowered();
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  }

  DeviceTraits device = attending_device();
  Schedule schedule;
  HeapLayout heap;
  RankProgram program;
};

TEST(LoweringAttention, NamesQueriesKeysAndValuesAndBeginsAnewBehindAStore) {
  Attending a;
  const Rect second{0, 128, 64, 128};
  a.builder.workgroup(a.attends);
  a.builder.attend(a.q, second, a.k, a.v, 0, 64, 256, {.limit = 100, .group = 2});
  a.builder.attend(a.q, second, a.k, a.v, 0, 256, 512);
  a.builder.store(a.o, second, 0);
  a.builder.attend(a.q, {0, 0, 64, 128}, a.k, a.v, 0, 0, 512);
  a.builder.store(a.o, {0, 0, 64, 128}, 0);
  const std::vector<DeviceOp> ops = a.lowered();
  EXPECT_EQ(ops[0].address, a.at(a.q, 0, 128));
  EXPECT_EQ(ops[0].source, a.at(a.k, 64, 0));
  EXPECT_EQ(ops[0].values, a.at(a.v, 64, 0));
  EXPECT_EQ(ops[0].k_begin, 64);
  EXPECT_EQ(ops[0].k_end, 256);
  EXPECT_EQ(ops[0].value, 100);
  EXPECT_EQ(ops[0].group, 2);
  EXPECT_NE(ops[0].bits & kFresh, 0);
  EXPECT_EQ(ops[1].bits & kFresh, 0);
  EXPECT_NE(ops[3].bits & kFresh, 0);
  EXPECT_EQ(ops[2].partial, 0);
}

TEST(LoweringAttention, TakesTheSmallestKernelThatHoldsQueriesAndColumns) {
  Attending a(DType::fp16, DType::fp32, 32);
  a.builder.workgroup(a.attends);
  a.builder.attend(a.q, {0, 0, 32, 128}, a.k, a.v, 0, 0, 512);
  a.builder.store(a.o, {0, 0, 32, 128}, 0);
  a.lowered();
  const TileTraits* const tile = a.program.kernels[0].tile;
  ASSERT_NE(tile, nullptr);
  EXPECT_EQ(tile->m, 64);
  EXPECT_EQ(tile->depth, 128);
  EXPECT_EQ(a.program.kernels[0].threads, 128);
}

TEST(LoweringAttention, TellsPartialsFromResultsAndGoesOnBehindTheirStore) {
  Attending a;
  a.builder.workgroup(a.attends);
  a.builder.attend(a.q, {0, 0, 64, 128}, a.k, a.v, 0, 0, 512);
  a.builder.store(a.partials, {0, 0, 64, 129}, 0);
  a.builder.combine(a.partials, {64, 0, 64, 129}, 0);
  a.builder.store(a.o, {0, 0, 64, 128}, 0);
  const std::vector<DeviceOp> ops = a.lowered();
  EXPECT_EQ(ops[1].partial, 1);
  EXPECT_EQ(ops[2].bits & kFresh, 0);
  EXPECT_EQ(ops[3].partial, 0);
}

// Eight numbers a thread: 256 threads hold 15 rows of 129 columns, and no more.
TEST(LoweringAttention, SmallCombinesAreLean) {
  for (const std::int32_t rows : {1, 15, 16}) {
    Attending a;
    a.builder.workgroup(a.combines);
    a.builder.combine(a.partials, {0, 0, rows, 129}, 0);
    a.builder.combine(a.partials, {rows, 0, rows, 129}, 0);
    a.builder.store(a.o, {0, 0, rows, 128}, 0);
    const std::vector<DeviceOp> ops = a.lowered();
    EXPECT_NE(ops[0].bits & kFresh, 0);
    EXPECT_EQ(ops[1].bits & kFresh, 0);
    EXPECT_EQ(a.program.kernels[1].lean, rows < 16);
    EXPECT_FALSE(a.program.kernels[0].lean);
  }
}

TEST(LoweringAttention, SaysWhatTheGpuLacks) {
  {
    Attending a(DType::fp32);
    a.builder.workgroup(a.attends);
    a.builder.attend(a.q, {0, 0, 64, 128}, a.k, a.v, 0, 0, 512);
    a.builder.store(a.o, {0, 0, 64, 128}, 0);
    EXPECT_NE(a.refusal().find("64 queries of 128 columns in fp32 fit no kernel with attention"),
              std::string::npos);
  }
  {
    Attending a;
    a.builder.workgroup(a.attends);
    a.builder.attend(a.q, {0, 4, 64, 64}, a.k, a.v, 4, 0, 512);
    a.builder.store(a.o, {0, 0, 64, 64}, 0);
    EXPECT_NE(a.refusal().find("column 4 of its queries"), std::string::npos);
  }
  {
    Attending a(DType::fp16, DType::fp16);
    a.builder.workgroup(a.attends);
    a.builder.attend(a.q, {0, 0, 64, 128}, a.k, a.v, 0, 0, 512);
    a.builder.store(a.partials, {0, 0, 64, 129}, 0);
    EXPECT_NE(a.refusal().find("log-sum-exps in buffer 'partials' of fp16"), std::string::npos);
  }
  {
    Attending a;
    a.builder.workgroup(a.attends);
    a.builder.attend(a.q, {0, 0, 64, 128}, a.k, a.v, 0, 0, 512);
    a.builder.atomic_add(a.o, {0, 0, 64, 128}, 0);
    EXPECT_NE(a.refusal().find("adds what a kernel that attends holds"), std::string::npos);
  }
  for (const bool attends_first : {true, false}) {
    Attending a;
    a.device.tiles.push_back({DType::fp16, 64, 128, 128, 100000, 0, 0, 0});
    a.builder.workgroup(a.attends);
    if (attends_first) a.builder.attend(a.q, {0, 0, 64, 128}, a.k, a.v, 0, 0, 512);
    a.builder.matmul(a.q, a.k, {0, 0, 64, 64}, 0, 256);
    if (!attends_first) a.builder.attend(a.q, {0, 0, 64, 64}, a.k, a.v, 0, 0, 512);
    a.builder.store(a.o, {0, 0, 64, 64}, 0);
    const std::string refusal = a.refusal();
    EXPECT_NE(refusal.find(attends_first ? "operation 1 (matmul): multiplies in a kernel that attends"
                                         : "operation 1 (attend): attends in a kernel that multiplies"),
              std::string::npos)
        << refusal;
  }
}

}  // namespace
}  // namespace tritax::gpu
