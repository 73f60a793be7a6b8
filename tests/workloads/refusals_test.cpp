// Refusals of patterns: the message names the knob, the value and what is allowed.

#include <gtest/gtest.h>

#include "model/core/error.hpp"
#include "tests/cost/example_machines.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

std::string refusal(const GemmKnobs& knobs,
                    const GemmAllScatter& workload = {8192, 4608, 4096, DType::fp16, 8},
                    std::string_view pattern = "producer-consumer",
                    const Machine& machine = example::amd_node()) {
  try {
    build(pattern, workload, machine, knobs);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

template <typename Value>
GemmKnobs with(Value GemmKnobs::*knob, Value value) {
  GemmKnobs knobs;
  knobs.*knob = value;
  return knobs;
}

TEST(Refusals, NameTheTileThatDoesNotFitLds) {
  EXPECT_EQ(refusal(with(&GemmKnobs::tile_k, 128)),
            "tile 256x256x128 of fp16 with 8 waves on MI300X needs 131072 bytes of LDS, but a workgroup has "
            "at most 65536: "
            "use a smaller tile_k, tile_m or tile_n");
  EXPECT_EQ(refusal(with(&GemmKnobs::tile_k, 64)), "accepted");
}

TEST(Refusals, NameTheTileThatDoesNotFitRegisters) {
  GemmKnobs knobs;
  knobs.tile_m = 512;
  knobs.tile_k = 32;
  // 256 accumulators, fragments 2·(128 + 128)·32 B / 256 B = 64, in flight 48 KB / 2 KB = 24, others 24.
  EXPECT_EQ(refusal(knobs),
            "tile 512x256x32 of fp16 with 8 waves on MI300X needs 368 registers per thread, but only 256 are "
            "available: "
            "use a smaller tile_m, tile_n or tile_k, or other waves");
}

TEST(Refusals, CoverTilesAndWavesThatNoKernelHas) {
  EXPECT_EQ(refusal(with(&GemmKnobs::tile_m, 0)),
            "tile_m: 0 is not allowed; it must be a multiple of 16 up to 512");
  EXPECT_EQ(refusal(with(&GemmKnobs::tile_n, 100)),
            "tile_n: 100 is not allowed; it must be a multiple of 16 up to 512");
  EXPECT_EQ(refusal(with(&GemmKnobs::tile_k, 1024)),
            "tile_k: 1024 is not allowed; it must be a multiple of 16 up to 512");
  EXPECT_EQ(refusal(with(&GemmKnobs::comm_tile_m, -16)),
            "comm_tile_m: -16 is not allowed; it must be a multiple of 16 up to 4096");
  EXPECT_EQ(refusal(with(&GemmKnobs::waves, 6)), "waves: 6 is not allowed; it must be 1, 2, 4, 8 or 16");
  EXPECT_EQ(refusal(with(&GemmKnobs::group_m, 0)), "group_m: 0 is not allowed; it must be at least 1");
  EXPECT_EQ(refusal(with(&GemmKnobs::xcd_chunk, -1)), "xcd_chunk: -1 is not allowed; it must be at least 1");
  GemmKnobs chunks_of_nothing;
  chunks_of_nothing.xcd_remap = false;
  chunks_of_nothing.xcd_chunk = 4;
  EXPECT_EQ(refusal(chunks_of_nothing),
            "xcd_chunk: 4 has no effect without xcd_remap; leave one of the two out");
}

TEST(Refusals, CoverMoreComputeUnitsThanThereAre) {
  EXPECT_EQ(refusal(with(&GemmKnobs::gemm_cus, 305)),
            "gemm_cus: 305 is not allowed; give 1 to 304, the compute units of MI300X, or leave it out");
  EXPECT_EQ(refusal(with(&GemmKnobs::comm_cus, -1)),
            "comm_cus: -1 is not allowed; give 1 to 304, the compute units of MI300X, or leave it out");
  GemmKnobs both;
  both.gemm_cus = 256;
  both.comm_cus = 49;
  const std::string expected =
      "gemm_cus + comm_cus: 256 + 49 must both be at least 1 and together at most the 304 compute units of "
      "MI300X";
  EXPECT_EQ(refusal(both), expected);
  EXPECT_EQ(refusal(both, {8192, 4608, 4096, DType::fp16, 8}, "workgroup-specialised"), expected);
  // Its two kernels follow each other, so both may use what they like.
  EXPECT_EQ(refusal(both, {8192, 4608, 4096, DType::fp16, 8}, "bulk-synchronous"), "accepted");
  EXPECT_EQ(refusal(with(&GemmKnobs::gemm_cus, 304)).substr(0, 29), "gemm_cus + comm_cus: 304 + 0 ");
}

TEST(Refusals, CoverWorkloadsThatTheMachineCannotRun) {
  EXPECT_EQ(refusal({}, {8192, 4608, 4096, DType::fp16, 9}), "gpus = 9 is not allowed; machine amd-8 has 8");
  GemmKnobs knobs;
  knobs.tile_k = 32;
  EXPECT_EQ(refusal(knobs, {64, 64, 64, DType::fp32, 2}, "library", example::nvidia_node()),
            "dtype: H200 has no matrix instruction for fp32");
}

TEST(Refusals, CoverMatricesThatDoNotFitMemory) {
  // A takes 2^34 bytes, B 2^35, C 2^31; the library's staging buffer 2^31 more and its
  // own block 2^28.
  Machine machine = example::amd_node();
  const GemmAllScatter workload{1 << 13, 1 << 17, 1 << 20, DType::fp16, 8};
  machine.gpu.hbm_bytes = 0x1p34 + 0x1p35 + 0x1p31;
  EXPECT_EQ(refusal({}, workload, "fused-sequential", machine), "accepted");
  EXPECT_EQ(refusal({}, workload, "library", machine),
            "workload: pattern library needs 56.1 GB on every GPU; MI300X has 53.7 GB");
  machine.gpu.hbm_bytes -= 1;
  EXPECT_EQ(refusal({}, workload, "fused-sequential", machine),
            "workload: this problem needs 53.7 GB on every GPU; MI300X has 53.7 GB");
}

TEST(Refusals, CoverTilesSoSmallThatTheScheduleWouldFillMemory) {
  GemmKnobs knobs;
  knobs.tile_m = knobs.tile_n = 16;
  EXPECT_NE(refusal(knobs, {1 << 18, 1 << 18, 1, DType::fp8, 8}).find("too many to schedule"),
            std::string::npos);
}

TEST(Refusals, CoverWavesThatDoNotMakeWholeWarpGroups) {
  GemmKnobs knobs;
  knobs.tile_m = knobs.tile_n = 64;
  knobs.waves = 2;
  EXPECT_EQ(refusal(knobs, {64, 64, 64, DType::fp16, 2}, "fused-sequential", example::nvidia_node()),
            "waves: 2 is not a multiple of 4; the matrix instructions of H200 take whole warp groups");
}

}  // namespace
}  // namespace tritax
