// Sparse products on a GPU: every schedule of them leaves the product, whatever the matrix.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gpu_schedules.hpp"
#include "model/machine/machine.hpp"
#include "model/workloads/registry.hpp"

namespace tritax::gpu {
namespace {

using Given = std::vector<std::pair<const char*, std::int64_t>>;

void expect_products(const Given& fields, const Given& knobs, std::uint64_t seed) {
  const Machine machine = find_machine("h200-4");
  const Workload& workload = find_workload("spmv", "test");
  tritax::Problem problem = problem_of(workload);
  for (const auto& [field, value] : fields) problem.values.give(field, value);
  complete_problem(problem, "test");
  Values given(workload.knobs);
  for (const auto& [knob, value] : knobs) given.give(knob, value);
  for (const Pattern& pattern : workload.patterns) {
    SCOPED_TRACE(fmt::format("{}, {}", pattern.name, workload.size_text(problem)));
    expect_right(build_schedule(pattern, problem, machine, resolved_knobs(problem, machine, given)), seed);
  }
}

TEST(SparseOnGpu, EveryScheduleLeavesTheProductOfEveryStructure) {
  TRITAX_NEEDS_GPUS(1);
  for (std::int64_t structure = 0; structure < 4; ++structure) {
    for (const std::int64_t length : {2, 17, 130}) {
      expect_products({{"rows", 3001}, {"row_length", length}, {"structure", structure}}, {}, 61);
    }
    expect_products({{"rows", 70000}, {"row_length", 9}, {"structure", structure}}, {}, 62);
  }
}

TEST(SparseOnGpu, SmallAndRaggedWorkgroupsLeaveItToo) {
  TRITAX_NEEDS_GPUS(1);
  const Given power{{"rows", 5003}, {"row_length", 20}, {"structure", 1}, {"exponent", 150}};
  for (const std::int64_t threads : {32, 64, 256, 512, 1024}) {
    for (const std::int64_t lanes : {4, 16, 32}) {
      expect_products(power, {{"workgroup_threads", threads}, {"lanes", lanes}, {"items", 3}, {"chunk", 333}},
                      63);
    }
  }
  expect_products(power, {{"workgroup_threads", 256}, {"lanes", 256}, {"short_row", 2}, {"long_row", 9}}, 64);
  expect_products({{"rows", 1}, {"row_length", 1000}, {"cols", 5000}}, {}, 65);
  expect_products({{"rows", 3}, {"row_length", 100000}, {"cols", 200000}}, {}, 66);
  expect_products({{"rows", 100000}, {"row_length", 1}, {"cols", 7}}, {}, 67);
}

TEST(SparseOnGpu, NumbersOfSixteenBitsAreSummedInFp32) {
  TRITAX_NEEDS_GPUS(1);
  for (const DType dtype : {DType::fp16, DType::bf16, DType::fp8}) {
    expect_products(
        {{"rows", 3001}, {"row_length", 17}, {"structure", 1}, {"dtype", static_cast<std::int64_t>(dtype)}},
        {}, 68);
  }
}

TEST(SparseOnGpu, AStampedRunSaysWhenProductsBeginAndEnd) {
  TRITAX_NEEDS_GPUS(1);
  const Machine machine = find_machine("h200-4");
  const Workload& workload = find_workload("spmv", "test");
  tritax::Problem problem = problem_of(workload);
  complete_problem(problem, "test");
  for (const Pattern& pattern : workload.patterns) {
    SCOPED_TRACE(std::string(pattern.name));
    const Schedule schedule = build_schedule(pattern, problem, machine, resolved_knobs(problem, machine, {}));
    ExecutorOptions options;
    options.stamps = true;
    Executor executor(schedule, options);
    executor.fill(69);
    executor.run();
    EXPECT_TRUE(executor.check().passed);
    std::size_t products = 0, stamped = 0;
    for (const Op& op : schedule.ops) products += op.kind == OpKind::sparse_product ? 1 : 0;
    for (const StampedOp& stamp : executor.stamps()) {
      EXPECT_LE(stamp.begin_us, stamp.end_us);
      const auto number = static_cast<std::size_t>(stamp.number);
      stamped += schedule.ops[number].kind == OpKind::sparse_product ? 1 : 0;
    }
    EXPECT_EQ(stamped, products);
  }
}

}  // namespace
}  // namespace tritax::gpu
