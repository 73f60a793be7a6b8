// Where buffers and flags lie on the GPU.
#include <gtest/gtest.h>

#include "one_kernel.hpp"

namespace tritax::gpu {
namespace {

TEST(Heap, BuffersAndFlagsDoNotOverlapAndRowsStartOn128Bytes) {
  ScheduleBuilder builder("heap", 1);
  builder.buffer({"odd", DType::bf16, 33, 65, 16, 16});
  builder.buffer({"fp8", DType::fp8, 7, 129, 16, 16});
  builder.flags("flags", 3);
  const Schedule schedule = builder.finish();
  const HeapLayout heap = lay_out_heap(schedule, plain_device());
  EXPECT_EQ(heap.buffers[0].pitch, 256);
  EXPECT_EQ(heap.buffers[1].pitch, 256);
  EXPECT_GE(heap.buffers[1].offset, 33U * 256U);
  EXPECT_GE(heap.flag_offsets[0], heap.buffers[1].offset + 7U * 256U);
  EXPECT_EQ(heap.flags_begin, heap.flag_offsets[0]);
  EXPECT_GE(heap.flags_end, heap.flags_begin + 12U);
  EXPECT_EQ(heap.bytes, heap.flags_end);
}

TEST(Heap, HoldsNoElementsInACodec) {
  ScheduleBuilder builder("coded", 1);
  builder.buffer({"slots", DType::bf16, 32, 64, 16, 64, Codec::int8});
  EXPECT_THROW(lay_out_heap(builder.finish(), plain_device()), UserError);
}

TEST(Heap, ThereIsMemoryBehindOperandsForBoxesThatReachOverTheirLastRow) {
  ScheduleBuilder last("last", 1);
  const std::int16_t b = last.buffer({"B", DType::bf16, 64, 128, 64, 128});
  const std::int16_t c = last.buffer({"C", DType::bf16, 16, 128, 16, 128});
  const std::int16_t a = last.buffer({"A", DType::bf16, 16, 64, 16, 64});
  Kernel kernel;
  kernel.tile = {128, 128, 64, 8, Pipeline::overlapped};
  last.kernel(std::move(kernel));
  last.workgroup(0);
  last.matmul(a, b, {0, 0, 16, 128}, 0, 64);
  last.store(c, {0, 0, 16, 128}, 0);
  const Schedule schedule = last.finish();
  const HeapLayout with_boxes = lay_out_heap(schedule, device_with_copy_engine());
  EXPECT_GE(with_boxes.bytes, with_boxes.buffers[2].offset + (16U + 128U) * 128U);
  EXPECT_EQ(lay_out_heap(schedule, plain_device()).bytes, with_boxes.flags_end);
}

TEST(Heap, Fp8OperandsBGetATransposedCopyWhereTheMatrixUnitWantsOne) {
  OneKernel test(DType::fp8);
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  const Schedule schedule = test.builder.finish();
  EXPECT_GT(lay_out_heap(schedule, device_with_copy_engine()).buffers[1].transposed_pitch, 0);
  EXPECT_EQ(lay_out_heap(schedule, device_with_copy_engine()).buffers[0].transposed_pitch, 0);
  EXPECT_EQ(lay_out_heap(schedule, plain_device()).buffers[1].transposed_pitch, 0);
}

}  // namespace
}  // namespace tritax::gpu
