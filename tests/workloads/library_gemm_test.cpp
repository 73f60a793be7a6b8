#include <gtest/gtest.h>

#include "model/core/error.hpp"
#include "sim/simulate.hpp"
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

TEST(LibraryGemmSchedule, HasDeepStepsWhereTilesAreSmall) {
  const MatmulTile few_rows =
      schedule_of(library_gemm_of(16, 4096, 8192, DType::bf16), find_machine("mi355x-8")).kernels.at(0).tile;
  EXPECT_GT(few_rows.k, 64);
  EXPECT_LE(few_rows.k, 512);
  EXPECT_LE((few_rows.m + few_rows.n) * few_rows.k, 28 * 1024);
  for (const char* machine : {"mi355x-8", "h200-8"}) {  // large tiles, and another library
    EXPECT_EQ(schedule_of(library_gemm_of(8192, 8192, 8192, DType::bf16), find_machine(machine))
                  .kernels.at(0)
                  .tile.k,
              64);
  }
}

// A kernel whose few stages wait for memory one by one would take four times as long.
TEST(LibraryGemmSchedule, OfFewRowsTakesLittleMoreThanItsWeightsFromMemory) {
  for (const char* name : {"mi300x-8", "mi355x-8"}) {
    const Machine machine = find_machine(name);
    for (const std::int64_t rows : {16, 64}) {
      const double weights_ns = 2.0 * 6144 * 18432 / machine.gpu.hbm_gb_per_s;
      const double time_ns =
          simulate(schedule_of(library_gemm_of(rows, 6144, 18432, DType::bf16), machine), machine)
              .makespan_ns;
      EXPECT_GT(time_ns, weights_ns) << name;
      EXPECT_LT(time_ns, 2 * weights_ns) << name << ' ' << rows;
    }
  }
}

}  // namespace
}  // namespace tritax
