#include <gtest/gtest.h>

#include "model/core/error.hpp"
#include "tests/workloads/problems.hpp"

namespace tritax {
namespace {

Schedule schedule_of(const Problem& problem, const Machine& machine) {
  return build_schedule(find_pattern(library_gemm(), "library", "test"), problem, machine, {});
}

TEST(LibraryGemmSchedule, TakesTheGivenTileOrLetsTheLibraryPick) {
  Problem problem = library_gemm_of(4096, 4096, 4096, DType::bf16);
  const Machine machine = find_machine("mi325x-8");
  // 256 tiles of 256×256 leave 48 of 304 CUs idle; the library has 256×224, which fills them in one wave.
  EXPECT_EQ(schedule_of(problem, machine).kernels.at(0).workgroups.size(), 304U);
  problem.values.give("tile_m", 128);
  problem.values.give("tile_n", 256);
  problem.values.give("tile_k", 64);
  const Schedule schedule = schedule_of(problem, machine);
  EXPECT_EQ(schedule.kernels.at(0).tile.m, 128);
  EXPECT_EQ(schedule.kernels.at(0).tile.n, 256);
  EXPECT_EQ(schedule.kernels.at(0).tile.waves, 8);
  EXPECT_EQ(schedule.kernels.at(0).tile.pipeline, Pipeline::overlapped);
  EXPECT_EQ(schedule.kernels.at(0).workgroups.size(), 512U);
  problem.values.give("tile_m", 8192);
  EXPECT_THROW(schedule_of(problem, machine), UserError);
}

TEST(LibraryGemmSchedule, WritesProductsOfEightBitNumbersAsSixteenBits) {
  const Machine machine = find_machine("mi355x-8");
  for (const DType dtype : {DType::bf16, DType::fp8}) {
    const Schedule schedule = schedule_of(library_gemm_of(512, 512, 512, dtype), machine);
    EXPECT_EQ(schedule.buffers.at(static_cast<std::size_t>(schedule.result_buffer)).dtype, DType::bf16);
    EXPECT_EQ(schedule.buffers.at(0).dtype, dtype);
  }
}

}  // namespace
}  // namespace tritax
