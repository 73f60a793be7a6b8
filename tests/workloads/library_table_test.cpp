// Tables of measured calls (model/machine/library_table.hpp), where schedules run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/core/csv.hpp"
#include "model/cost/kernel_rates.hpp"
#include "model/machine/library_table.hpp"
#include "model/schedule/json.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/all_gather_gemm/workload.hpp"
#include "model/workloads/all_reduce/workload.hpp"
#include "model/workloads/paged_attention/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/problems.hpp"

namespace tritax {
namespace {

Machine by_law(Machine machine) {
  machine.library_tables.clear();
  machine.collective_tables.clear();
  machine.attention_tables.clear();
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
  for (const char* name : {"h200-8", "h100-8", "mi355x-8", "b200-8", "b300-8", "gb200-4"}) {
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

// On the GPU that waits least for the others.
double last_kernels_ns(const Problem& problem, const Machine& machine, const Values& knobs) {
  const Schedule schedule = build_schedule(find_pattern(*problem.workload, "library", "test"), problem,
                                           machine, resolved_knobs(problem, machine, knobs));
  SimulationOptions options;
  options.symmetry = Symmetry::off;
  double least_ns = std::numeric_limits<double>::infinity();
  for (const RankResult& rank : simulate(schedule, machine, options).ranks)
    least_ns = std::min(least_ns, rank.kernels_ns);
  return least_ns;
}

// Of an all-reduce in a table: the knobs of its operation; nothing of another operation.
std::optional<Values> knobs_of_all_reduce(std::string_view op) {
  constexpr std::string_view kEnd = "-all-reduce";
  Values knobs(all_reduce().knobs);
  if (op == kEnd.substr(1)) return knobs;
  for (std::size_t engine = 0; engine < kEngineNames.size(); ++engine) {
    if (op != std::string(kEngineNames[engine]) + std::string(kEnd)) continue;
    const Spec& form = *find_spec(all_reduce().knobs, kFormKnob);
    knobs.give(kFormKnob, static_cast<std::int64_t>(form.names.size() - 1));  // custom-graph
    knobs.give(kEngineKnob, static_cast<std::int64_t>(engine));
    return knobs;
  }
  return std::nullopt;
}

TEST(LibraryTables, OfAllReducesAreReproducedWithinOnePercent) {
  const Machine machine = find_machine("h200-8");
  for (const auto& table : machine.collective_tables) {
    int compared = 0;
    const std::string path =
        std::string(TRITAX_SOURCE_DIR) + "/model/machine/library/" + table->name() + ".csv";
    read_csv(read_csv_file(path, "test"), path, "op,gpus,bytes,us,ratio", "test", [&](const CsvRow& row) {
      constexpr std::int64_t kSome = 1 << 24, kCols = 1024;  // as scripts/make-library-table has them
      const std::int64_t bytes = row.integer("bytes", 1, std::int64_t{1} << 40);
      const std::optional<Values> knobs = knobs_of_all_reduce(row.text("op"));
      if (!knobs || bytes < 2048 || bytes > kSome) return;
      const std::int64_t gpus = row.integer("gpus", 2, 8);
      Problem problem = problem_of(all_reduce());
      problem.values.give("rows", bytes * gpus / 2 / kCols);
      problem.values.give("cols", kCols);
      problem.values.give("dtype", static_cast<std::int64_t>(DType::fp16));
      problem.values.give("gpus", gpus);
      complete_problem(problem, "test");
      EXPECT_NEAR(last_kernels_ns(problem, machine, *knobs) / 1000 / row.positive("us", "time"), 1, 0.0105)
          << row.text("op") << " on " << gpus << " GPUs, " << bytes << " bytes";
      ++compared;
    });
    EXPECT_GE(compared, 20) << table->name();
  }
}

// Calls that no table has (scenarios/library): tables must say more of them than the law does.
TEST(LibraryTables, AreBetterThanTheLawOnCallsThatTheyDoNotHave) {
  for (const auto& [name, table] : {std::pair{"h200-8", "cublas-h200-bf16"},
                                    {"mi355x-8", "hipblaslt-mi355x-bf16"},
                                    {"b200-8", "cublas-b200-bf16"}}) {
    const Machine machine = find_machine(name);
    const Machine law = by_law(machine);
    const std::string path = std::string(TRITAX_SOURCE_DIR) + "/scenarios/library/" + table + ".csv";
    std::vector<double> with, without;
    std::size_t line = 0;
    read_csv(read_csv_file(path, "test"), path, "dtype,m,n,k,us", "test", [&](const CsvRow& row) {
      if (line++ % 4 != 0) return;
      const auto size = [&](const char* side) { return row.integer(side, 1, std::int64_t{1} << 31); };
      const auto dtype = static_cast<DType>(row.choice("dtype", kDTypeNames));
      if (static_cast<double>(size("m")) * static_cast<double>(size("n")) * static_cast<double>(size("k")) >
          1e12)
        return;
      const double us = row.positive("us", "time");
      const Schedule schedule = product(machine, size("m"), size("n"), size("k"), dtype);
      with.push_back(std::abs(kernels_ns(schedule, machine) / 1000 / us - 1));
      without.push_back(std::abs(kernels_ns(schedule, law) / 1000 / us - 1));
    });
    ASSERT_GE(with.size(), 20U) << table;
    const auto median = [](std::vector<double>& off) {
      std::nth_element(off.begin(), off.begin() + static_cast<std::ptrdiff_t>(off.size() / 2), off.end());
      return off[off.size() / 2];
    };
    EXPECT_LT(median(with), 0.75 * median(without)) << table;
  }
}

struct AttentionRow {
  AttentionCall call;
  DType dtype = DType::bf16;
  double us = 0;

  Problem problem() const {
    Problem problem = problem_of(paged_attention());
    for (const auto& [field, value] : {std::pair{"sequences_count", call.sequences},
                                       {"sequences_query", call.queries},
                                       {"sequences_context", call.keys},
                                       {"q_heads", call.heads},
                                       {"kv_heads", call.kv_heads},
                                       {"head_dim", call.depth},
                                       {"dtype", static_cast<std::int64_t>(dtype)}}) {
      problem.values.give(field, value);
    }
    complete_problem(problem, "test");
    return problem;
  }
  Schedule schedule(const Machine& machine) const {
    const Problem asked = problem();
    return build_schedule(find_pattern(paged_attention(), "library", "test"), asked, machine,
                          resolved_knobs(asked, machine, Values(paged_attention().knobs)));
  }
  double off(const Machine& machine) const {
    return std::abs(kernels_ns(schedule(machine), machine) / 1000 / us - 1);
  }
};

// Every `step`th small row of a file.
std::vector<AttentionRow> attention_rows(const std::string& path, const std::string& columns,
                                         std::size_t step) {
  std::vector<AttentionRow> rows;
  std::size_t line = 0;
  read_csv(read_csv_file(path, "test"), path, columns, "test", [&](const CsvRow& row) {
    const auto size = [&](const char* side) { return row.integer(side, 1, std::int64_t{1} << 31); };
    AttentionRow found{
        {size("sequences"), size("queries"), size("keys"), size("heads"), size("kv_heads"), size("head_dim")},
        static_cast<DType>(row.choice("dtype", kDTypeNames)),
        row.positive("us", "time")};
    if (line++ % step == 0 && found.us < 2000) rows.push_back(found);
  });
  return rows;
}

TEST(LibraryTables, OfAttentionAreReproducedAndBetterThanTheLaw) {
  const std::string columns = "dtype,sequences,queries,keys,heads,kv_heads,head_dim,us";
  for (const char* name : {"h200-8", "h100-8", "b200-8"}) {
    const Machine machine = find_machine(name);
    const Machine law = by_law(machine);
    ASSERT_EQ(machine.attention_tables.size(), 1U) << name;
    const std::string table = machine.attention_tables.front()->name();
    const std::string shipped = std::string(TRITAX_SOURCE_DIR) + "/model/machine/library/" + table + ".csv";
    for (const AttentionRow& row : attention_rows(shipped, columns + ",ratio", 60))
      EXPECT_LT(row.off(machine), 0.0105) << name << " " << row.us;
    const std::string left_out = std::string(TRITAX_SOURCE_DIR) + "/scenarios/library/" + table + ".csv";
    std::vector<double> with, without;
    for (const AttentionRow& row : attention_rows(left_out, columns, 10)) {
      with.push_back(row.off(machine));
      without.push_back(row.off(law));
    }
    ASSERT_GE(with.size(), 40U) << table;
    const auto median = [](std::vector<double>& off) {
      std::nth_element(off.begin(), off.begin() + static_cast<std::ptrdiff_t>(off.size() / 2), off.end());
      return off[off.size() / 2];
    };
    EXPECT_LT(median(with), 0.75 * median(without)) << table;
  }
}

TEST(LibraryTables, OfAttentionLeaveOwnKernelsAlone) {
  const Machine machine = find_machine("h200-8");
  AttentionRow row{{16, 1, 2048, 32, 8, 128}, DType::bf16, 1};
  const Problem problem = row.problem();
  for (const Pattern& pattern : paged_attention().patterns) {
    const Values knobs = resolved_knobs(problem, machine, Values(paged_attention().knobs));
    const Schedule schedule = build_schedule(pattern, problem, machine, knobs);
    const double with = kernels_ns(schedule, machine), without = kernels_ns(schedule, by_law(machine));
    EXPECT_EQ(with == without, !pattern.vendor) << pattern.name;
  }
}

TEST(LibraryTables, AreNamedWhereTheyChangeATime) {
  const Machine machine = find_machine("h200-8");
  const AttentionRow row{{16, 1, 2048, 32, 8, 128}, DType::bf16, 1};
  EXPECT_EQ(tables_used(machine, row.schedule(machine)), std::vector<std::string>{"attention-h200"});
  EXPECT_EQ(tables_used(machine, product(machine, 64, 8192, 8192, DType::bf16)),
            std::vector<std::string>{"cublas-h200-bf16"});
  EXPECT_TRUE(tables_used(machine, product(machine, 64, 8192, 8192, DType::fp64)).empty());
  EXPECT_TRUE(tables_used(by_law(machine), row.schedule(machine)).empty());
}

TEST(LibraryTables, OfAttentionAreLookedUpForSchedulesThatWereWritten) {
  const Machine machine = find_machine("h200-8");
  AttentionRow row{{1, 1, 8192, 32, 8, 128}, DType::bf16, 1};
  const Schedule schedule = row.schedule(machine);
  ASSERT_EQ(schedule.kernels.size(), 3U);  // prepare, attend, merge
  const Schedule read = schedule_from_json(schedule_to_json(schedule), "test.json");
  EXPECT_EQ(read.kernels.at(1).library, schedule.kernels.at(1).library);
  EXPECT_EQ(read.kernels.at(1).library.kv_heads, 8);
  EXPECT_EQ(kernels_ns(read, machine), kernels_ns(schedule, machine));
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
  int compared = 0;
  for (const Pattern& pattern : all_gather_gemm().patterns) {
    if (pattern.vendor) continue;
    const Values knobs = resolved_knobs(problem, machine, Values(all_gather_gemm().knobs));
    const Schedule schedule = build_schedule(pattern, problem, machine, knobs);
    bool calls_a_library = false;
    for (const Kernel& kernel : schedule.kernels) {
      calls_a_library = calls_a_library || kernel.library.routine != LibraryRoutine::none;
    }
    if (calls_a_library) continue;
    ++compared;
    EXPECT_EQ(kernels_ns(schedule, machine), kernels_ns(schedule, by_law(machine))) << pattern.name;
  }
  EXPECT_GE(compared, 3);
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
