// Tables of measured calls (model/machine/library_table.hpp), where schedules run.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/cost/kernel_rates.hpp"
#include "model/machine/library_table.hpp"
#include "model/schedule/json.hpp"
#include "model/workloads/all_gather_gemm/problem.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/problems.hpp"

namespace tritax {
namespace {

Machine by_law(Machine machine) {
  machine.library_tables.clear();
  machine.collective_table.reset();
  return machine;
}

Schedule product(const Machine& machine, std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  return build_schedule(find_pattern(library_gemm(), "library", "test"), library_gemm_of(m, n, k, dtype),
                        machine, {});
}

double kernels_ns(const Schedule& schedule, const Machine& machine) {
  SimulationOptions options;
  options.symmetry = Symmetry::off;
  return simulate(schedule, machine, options).kernels_ns;
}

TEST(LibraryTables, AreReproducedWithinOnePercent) {
  for (const char* name : {"h200-8", "h100-8", "mi355x-8", "b200-8", "gb200-4"}) {
    const Machine machine = find_machine(name);
    ASSERT_FALSE(machine.library_tables.empty()) << name;
    for (const auto& table : machine.library_tables) {
      const std::vector<MeasuredProduct>& rows = table->products();
      const std::size_t step = std::max<std::size_t>(1, rows.size() / 60);
      for (std::size_t i = 0; i < rows.size(); i += step) {
        const MeasuredProduct& row = rows[i];
        if (static_cast<double>(row.m) * static_cast<double>(row.n) * static_cast<double>(row.k) > 1e12)
          continue;
        const double got_ns = kernels_ns(product(machine, row.m, row.n, row.k, row.dtype), machine);
        EXPECT_NEAR(got_ns / row.time_ns, 1, 0.0105) << name << " " << row.m << "x" << row.n << "x" << row.k;
      }
    }
  }
}

TEST(LibraryTables, LeaveTheLawAloneWhereTheySayNothing) {
  const Machine machine = find_machine("mi355x-8");
  const Schedule schedule = product(machine, 4096, 4096, 4096, DType::fp64);
  for (const Kernel& kernel : schedule.kernels) EXPECT_EQ(kernel_rates(machine, kernel).time_factor, 1);
  EXPECT_EQ(kernels_ns(schedule, machine), kernels_ns(schedule, by_law(machine)));
}

TEST(LibraryTables, NeverChangeAPatternsOwnKernels) {
  Problem problem = problem_of(all_gather_gemm());
  for (const char* size : {"m", "n", "k"}) problem.values.give(size, 2048);
  problem.values.give("gpus", 4);
  complete_problem(problem, "test");
  const Machine machine = find_machine("h200-8");
  for (const Pattern& pattern : all_gather_gemm().patterns) {
    if (pattern.vendor) continue;
    const Values knobs = resolved_knobs(problem, machine, Values(all_gather_gemm().knobs));
    const Schedule schedule = build_schedule(pattern, problem, machine, knobs);
    bool calls_a_library = false;
    for (const Kernel& kernel : schedule.kernels) {
      calls_a_library = calls_a_library || kernel.library.routine != LibraryRoutine::none;
    }
    if (calls_a_library) continue;
    EXPECT_EQ(kernels_ns(schedule, machine), kernels_ns(schedule, by_law(machine))) << pattern.name;
  }
}

TEST(LibraryTables, AreLookedUpForSchedulesThatWereWritten) {
  const Machine machine = find_machine("h200-8");
  const Schedule schedule = product(machine, 64, 8192, 8192, DType::bf16);
  EXPECT_EQ(schedule.kernels.at(0).library.rows, 64);
  EXPECT_EQ(schedule.kernels.at(0).library.columns, 8192);
  EXPECT_EQ(schedule.kernels.at(0).library.depth, 8192);
  const Schedule read = schedule_from_json(schedule_to_json(schedule), "test.json");
  EXPECT_EQ(read.kernels.at(0).library, schedule.kernels.at(0).library);
  EXPECT_EQ(kernels_ns(read, machine), kernels_ns(schedule, machine));
}

}  // namespace
}  // namespace tritax
