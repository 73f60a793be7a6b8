// Attention on one GPU: every kernel, masks, groups, ragged edges, splits and their merge, against fp64.
#include <gtest/gtest.h>

#include "gpu_schedules.hpp"

namespace tritax::gpu {
namespace {

struct AttentionCase {
  DType dtype = DType::bf16;
  std::int32_t tile = 64;
  std::int32_t depth = 128;
  std::int32_t queries = 256;
  std::int32_t keys = 512;
  std::int32_t limit = 0;
  std::int32_t group = 1;
};

// Keys in as many ranges as asked; with `splits` each range in a workgroup of its own, and a second kernel
// that combines.
Schedule attention(const AttentionCase& c, std::int32_t ranges, bool splits) {
  ScheduleBuilder builder("attention", 1);
  const std::int16_t q = builder.buffer({"Q", c.dtype, c.queries, c.depth, c.tile, c.depth});
  const std::int16_t k = builder.buffer({"K", c.dtype, c.keys, c.depth, 64, c.depth});
  const std::int16_t v = builder.buffer({"V", c.dtype, c.keys, c.depth, 64, c.depth});
  const std::int16_t o = builder.buffer({"O", c.dtype, c.queries, c.depth, c.tile, c.depth});
  const std::int16_t partials =
      builder.buffer({"partials", DType::fp32, c.queries * ranges, c.depth + 1, 1, c.depth + 1});
  builder.result(o);
  for (const std::int16_t buffer : {q, k, v}) builder.input(builder.whole(buffer));
  builder.expect_attention({o, 0, {0, 0, c.queries, c.depth}}, {q, 0, {0, 0, c.queries, c.depth}},
                           {k, 0, {0, 0, c.keys, c.depth}}, {v, 0, {0, 0, c.keys, c.depth}}, c.limit,
                           c.group);
  Kernel kernel;
  kernel.name = "attend";
  kernel.tile = {c.tile, 64, c.depth, 4, Pipeline::overlapped};
  const std::int32_t attends = builder.kernel(std::move(kernel));
  for (std::int32_t row = 0; row < c.queries; row += c.tile) {
    const Rect rect{row, 0, std::min(c.tile, c.queries - row), c.depth};
    ScheduleBuilder::Mask mask;
    if (c.limit > 0) mask = {.limit = c.limit + row / c.group, .group = c.group};
    if (!splits) builder.workgroup(attends);
    for (std::int32_t range = 0; range < ranges; ++range) {
      if (splits) builder.workgroup(attends);
      builder.attend(q, rect, k, v, 0, c.keys * range / ranges, c.keys * (range + 1) / ranges, mask);
      if (splits) builder.store(partials, {range * c.queries + row, 0, rect.rows, c.depth + 1}, 0);
    }
    if (!splits) builder.store(o, rect, 0);
  }
  builder.launch(0, attends);
  if (splits) {
    Kernel merge;
    merge.name = "combine";
    const std::int32_t combines = builder.kernel(std::move(merge));
    for (std::int32_t row = 0; row < c.queries; ++row) {
      builder.workgroup(combines);
      for (std::int32_t range = 0; range < ranges; ++range)
        builder.combine(partials, {range * c.queries + row, 0, 1, c.depth + 1}, 0);
      builder.store(o, {row, 0, 1, c.depth}, 0);
    }
    builder.launch(0, combines);
  }
  return builder.finish();
}

TEST(Attention, EveryKernelIsRight) {
  TRITAX_NEEDS_GPUS(1);
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    for (const std::int32_t tile : {16, 64, 128}) {
      for (const std::int32_t depth : {64, 128}) {
        SCOPED_TRACE(std::to_string(tile) + " of " + std::to_string(depth));
        expect_right(attention({dtype, tile, depth}, 1, false), 21);
      }
    }
  }
}

TEST(Attention, EdgesMasksGroupsAndRangesAreRight) {
  TRITAX_NEEDS_GPUS(1);
  for (const std::int32_t tile : {16, 64, 128}) {
    SCOPED_TRACE(tile);
    expect_right(attention({DType::fp16, tile, 80, 203, 391}, 3, false), 22);
    expect_right(attention({DType::fp16, tile, 128, 256, 256, 1, 1}, 2, false), 23);
    expect_right(attention({DType::fp16, tile, 64, 256, 300, 40, 4}, 4, false), 24);
  }
}

TEST(Attention, SplitsAreMergedRightEvenWhereASplitSeesNothing) {
  TRITAX_NEEDS_GPUS(1);
  for (const std::int32_t tile : {16, 64, 128}) {
    SCOPED_TRACE(tile);
    expect_right(attention({DType::bf16, tile, 128, 48, 1000}, 7, true), 25);
    expect_right(attention({DType::bf16, tile, 128, 128, 128, 1, 1}, 4, true), 26);
  }
}

}  // namespace
}  // namespace tritax::gpu
