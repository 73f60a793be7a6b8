#include <gtest/gtest.h>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"
#include "tests/cost/example_machines.hpp"

namespace tritax {
namespace {

TEST(MatmulResources, CountAccumulatorsFragmentsAndTheStageInFlight) {
  // 512 threads: 65536/512 = 128 accumulators; fragments 2·(128 + 64)·32 B / 256 B = 48; in flight 64 KB / 2
  // KB = 32; 24.
  const Resources resources = matmul_resources(example::amd_node().gpu, KernelCosts{}, DType::fp16,
                                               {256, 256, 64, 8, Pipeline::serial});
  EXPECT_EQ(resources.threads, 512);
  EXPECT_EQ(resources.registers_per_thread, 128 + 48 + 32 + 24);
  EXPECT_EQ(resources.lds_bytes, 65536);
}

TEST(MatmulResources, HoldAsManyStagesAsThePipelineWantsAndLdsAllows) {
  const Gpu amd = example::amd_node().gpu;
  EXPECT_EQ(
      matmul_resources(amd, KernelCosts{}, DType::fp16, {128, 128, 64, 4, Pipeline::overlapped}).lds_bytes,
      2 * 32768);
  EXPECT_EQ(
      matmul_resources(amd, KernelCosts{}, DType::fp16, {256, 256, 64, 8, Pipeline::overlapped}).lds_bytes,
      65536);
  const Gpu nvidia = example::nvidia_node().gpu;
  EXPECT_EQ(
      matmul_resources(nvidia, KernelCosts{}, DType::fp16, {128, 256, 64, 8, Pipeline::overlapped}).lds_bytes,
      4 * 49152);
  EXPECT_EQ(
      matmul_resources(nvidia, KernelCosts{}, DType::fp16, {128, 128, 64, 8, Pipeline::overlapped}).lds_bytes,
      7 * 32768);
  EXPECT_EQ(
      matmul_resources(nvidia, KernelCosts{}, DType::fp16, {64, 64, 64, 4, Pipeline::overlapped}).lds_bytes,
      8 * 16384);
  Gpu sending = nvidia;  // a finished tile lies in LDS as well
  sending.async_tile_store = true;
  EXPECT_EQ(matmul_resources(sending, KernelCosts{}, DType::fp16, {128, 256, 64, 8, Pipeline::overlapped})
                .lds_bytes,
            3 * 49152 + 65536 + static_cast<std::int32_t>(KernelCosts{}.lds_bytes_of_senders));
}

// Two registers a number, four stages, and no finished tile in LDS: the waves that multiply store it.
TEST(MatmulResources, OfFp64AreTwiceTheAccumulatorsAndFourStages) {
  Gpu nvidia = example::nvidia_node().gpu;
  nvidia.async_tile_store = true;
  const MatmulTile tile{128, 128, 16, 8, Pipeline::overlapped};
  const Resources wide = matmul_resources(nvidia, KernelCosts{}, DType::fp64, tile);
  const Resources usual = matmul_resources(nvidia, KernelCosts{}, DType::fp32, tile);
  EXPECT_EQ(wide.registers_per_thread - usual.registers_per_thread, 128 * 128 / 256);
  EXPECT_EQ(wide.lds_bytes, 4 * 256 * 16 * 8);
  EXPECT_THROW(matmul_resources(nvidia, KernelCosts{}, DType::fp64, {256, 128, 16, 8, Pipeline::overlapped}),
               UserError);
}

TEST(MatmulResources, OfAPipelineThatTheCopyEngineFeedsAreTwoStagesAtLeast) {
  Gpu nvidia = example::nvidia_node().gpu;
  nvidia.async_tile_store = true;
  KernelCosts costs;
  costs.copy_engine_row_bytes = 0;  // stages as deep as the tile
  EXPECT_EQ(matmul_resources(nvidia, costs, DType::fp16, {128, 128, 128, 8, Pipeline::overlapped}).lds_bytes,
            2 * 65536 + 32768 + static_cast<std::int32_t>(costs.lds_bytes_of_senders));
  EXPECT_THROW(matmul_resources(nvidia, costs, DType::fp16, {128, 128, 256, 8, Pipeline::overlapped}),
               UserError)
      << "one stage of 128 KiB fits, and nothing could come while it is multiplied";
}

TEST(MatmulResources, OfAPipelineThatTheCopyEngineFeedsAreStagesOfItsRows) {
  const Gpu nvidia = example::nvidia_node().gpu;
  for (const std::int32_t depth : {16, 128, 1024}) {
    const MatmulTile tile{128, 128, depth, 8, Pipeline::overlapped};
    EXPECT_EQ(matmul_resources(nvidia, KernelCosts{}, DType::fp16, tile).lds_bytes,
              matmul_resources(nvidia, KernelCosts{}, DType::fp16, {128, 128, 64, 8, Pipeline::overlapped})
                  .lds_bytes);
  }
}

}  // namespace
}  // namespace tritax
