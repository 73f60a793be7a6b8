// Lowering of norms: a workgroup without matrix instructions has a whole row in registers.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "one_kernel.hpp"

namespace tritax::gpu {
namespace {

// A kernel without matmul: it sums two rows of x, stores the sum and normalises it with the weights.
struct Norm {
  ScheduleBuilder builder{"norm", 1};
  std::int16_t x, weights, y;
  Schedule schedule;
  HeapLayout heap;

  explicit Norm(std::int32_t cols = 512, std::int32_t threads = 256, DType dtype = DType::bf16) {
    x = builder.buffer({"x", dtype, 8, cols, 1, cols});
    weights = builder.buffer({"weights", dtype, 2, cols, 1, cols});
    y = builder.buffer({"y", dtype, 8, cols, 1, cols});
    Kernel kernel;
    kernel.name = "norm";
    kernel.resources.threads = threads;
    builder.workgroup(builder.kernel(std::move(kernel)));
  }

  RankProgram lowered(const DeviceTraits& device = plain_device()) {
    builder.launch(0, 0);
    schedule = builder.finish();
    heap = lay_out_heap(schedule, device);
    return lower(schedule, heap, device, 0, {kHeapOfRank0});
  }

  std::string refusal(const DeviceTraits& device = plain_device()) {
    try {
      lowered(device);
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  }
};

constexpr Rect row_of(std::int32_t row, std::int32_t cols = 512) { return {row, 0, 1, cols}; }

TEST(LowerRmsNorm, NamesTheWeightsAndKeepsTheRow) {
  Norm norm;
  norm.builder.load(norm.x, row_of(2), 0);
  norm.builder.reduce(norm.x, row_of(3), 0);
  norm.builder.store(norm.y, row_of(0), 0);
  norm.builder.rms_norm(norm.weights, row_of(1), 0);
  norm.builder.store(norm.y, row_of(1), 0);
  const RankProgram program = norm.lowered();
  const DeviceOp& op = program.ops[3];
  const auto weights = static_cast<std::size_t>(norm.weights);
  EXPECT_EQ(static_cast<OpKind>(op.kind), OpKind::rms_norm);
  EXPECT_EQ(op.address, kHeapOfRank0 + norm.heap.buffers[weights].offset + 1024);  // the second row of 512
  EXPECT_EQ(op.rows, 1);
  EXPECT_EQ(op.cols, 512);
  EXPECT_EQ(op.width, 16);
  EXPECT_EQ(static_cast<DType>(op.dtype), DType::bf16);
  EXPECT_FALSE(has(op, kFresh));
  EXPECT_TRUE(has(program.ops[0], kFresh));
  EXPECT_FALSE(has(program.ops[1], kFresh));
}

TEST(LowerRmsNorm, WaitsForWeightsThatItsWorkgroupHasJustWritten) {
  for (const bool written : {false, true}) {
    Norm norm;
    norm.builder.copy(written ? norm.weights : norm.y, row_of(1), 0, norm.x, 0, 0, 0);
    norm.builder.load(norm.x, row_of(2), 0);
    norm.builder.rms_norm(norm.weights, row_of(1), 0);
    norm.builder.store(norm.y, row_of(3), 0);
    EXPECT_EQ(has(norm.lowered().ops[2], kJoin), written);
  }
}

// Eight numbers a thread, eight times: 256 threads hold a row of 16384.
TEST(LowerRmsNorm, RefusesRowsThatTheWorkgroupCannotHold) {
  for (const std::int32_t cols : {16384, 16392}) {
    Norm norm(cols);
    norm.builder.load(norm.x, row_of(0, cols), 0);
    norm.builder.rms_norm(norm.weights, row_of(0, cols), 0);
    norm.builder.store(norm.y, row_of(0, cols), 0);
    const std::string refusal = norm.refusal();
    if (cols == 16384) {
      EXPECT_EQ(refusal, "accepted");
    } else {
      EXPECT_NE(refusal.find("1x16392 elements are more than the accumulator of 256 threads holds (16384)"),
                std::string::npos)
          << refusal;
    }
  }
}

TEST(LowerRmsNorm, RefusesSeveralRowsNothingToNormaliseAndFp64) {
  Norm rows;
  rows.builder.load(rows.x, {0, 0, 2, 512}, 0);
  rows.builder.rms_norm(rows.weights, {0, 0, 2, 512}, 0);
  rows.builder.store(rows.y, {0, 0, 2, 512}, 0);
  EXPECT_NE(rows.refusal().find("operation 1 (rms_norm): normalises 2 rows at once; one is possible"),
            std::string::npos);

  Norm empty;
  empty.builder.load(empty.x, row_of(0), 0);
  empty.builder.rms_norm(empty.weights, row_of(0), 0);
  empty.builder.launch(0, 0);
  Schedule without = empty.builder.finish();
  without.ops.erase(without.ops.begin());
  without.kernels[0].workgroups[0].op_count = 1;
  try {
    lower(without, lay_out_heap(without, plain_device()), plain_device(), 0, {kHeapOfRank0});
    ADD_FAILURE() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("nothing was put into it"), std::string::npos) << error.what();
  }

  Norm wide(512, 256, DType::fp64);
  wide.builder.load(wide.x, row_of(0), 0);
  wide.builder.rms_norm(wide.weights, row_of(0), 0);
  wide.builder.store(wide.y, row_of(0), 0);
  EXPECT_NE(wide.refusal().find("fp64 data in a kernel that does not multiply in fp64"), std::string::npos);
}

TEST(LowerRmsNorm, RefusesAKernelThatMultiplies) {
  OneKernel test;
  const std::int16_t weights = test.builder.buffer({"weights", DType::bf16, 1, 256, 1, 256});
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.rms_norm(weights, {0, 0, 1, 128}, 0);
  test.builder.store(test.c, kTile, 0);
  const std::string refusal = test.refusal(device_with_copy_engine());
  EXPECT_NE(refusal.find("operation 1 (rms_norm): normalises in a kernel that multiplies"), std::string::npos)
      << refusal;
}

}  // namespace
}  // namespace tritax::gpu
