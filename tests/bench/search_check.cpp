// Whether rows of `tritax advise` are tuned: for random problems of GEMMs and a collective, no single change
// of a knob of a row, and no random knobs of its pattern, may be faster by more than 3 % in the median of
// five seeds. Rows that say "not tuned" do not count. Takes a minute a problem, so it is no test of ctest.
//
//   tritax_search_check MACHINE [PROBLEMS [RANDOM-POINTS [FIRST-SEED]]]
//
// Prints a line a problem; exits with 1 if a row was beaten. RANDOM-POINTS are for each problem, over its
// patterns.
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/workload/knob_space.hpp"
#include "model/workloads/registry.hpp"
#include "sim/simulate.hpp"
#include "sim/study/advise.hpp"

namespace tritax {
namespace {

constexpr double kBeaten = 0.97;  // of a row's time
constexpr std::array<std::string_view, 4> kWorkloads{"gemm-all-scatter", "all-gather-gemm",
                                                     "gemm-reduce-scatter", "gemm-all-reduce"};

using Random = std::mt19937_64;

template <typename List>
const auto& any_of(const List& values, Random& random) {
  return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

// Decode and prefill sizes, dtypes that the machine has, 2 GPUs to all.
Problem any_problem(const Machine& machine, Random& random) {
  const std::vector<std::int64_t> rows{16, 64, 200, 512, 1024, 2048, 4096, 8192};
  const std::vector<std::int64_t> cols{512, 1024, 2048, 3584, 4096, 4608, 8192, 10240, 14336};
  const std::vector<std::int64_t> depths{256, 1024, 2048, 4096, 8192, 14336, 28672};
  std::vector<DType> dtypes;
  for (const DType dtype : {DType::fp16, DType::bf16, DType::fp8, DType::fp32}) {
    if (machine.gpu.rate(dtype).flop_per_clk_per_cu > 0) dtypes.push_back(dtype);
  }
  std::vector<int> gpus;
  for (int count = 2; count <= machine.gpu_count(); count *= 2) gpus.push_back(count);
  Problem problem = problem_of(find_workload(any_of(kWorkloads, random), "search_check"));
  problem.values.give("m", any_of(rows, random));
  problem.values.give("n", any_of(cols, random));
  problem.values.give("k", any_of(depths, random));
  problem.values.give("dtype", static_cast<std::int64_t>(any_of(dtypes, random)));
  problem.values.give("gpus", any_of(gpus, random));
  complete_problem(problem, "search_check");
  return problem;
}

// All patterns of a question are launched alike.
bool launched_alike(const Values& a, const Values& b) {
  return !a.has("launch") || !b.has("launch") || a["launch"] == b["launch"];
}

std::vector<Values> single_changes(const KnobSpace& space, const Values& row) {
  std::vector<Values> changes;
  for (const Axis& axis : space.axes) {
    for (const AxisValue& value : axis.values) {
      Values changed = row;
      if (!value.apply(changed)) continue;
      if (space.settle) space.settle(changed);
      if (!(changed == row) && launched_alike(changed, row)) changes.push_back(std::move(changed));
    }
  }
  return changes;
}

std::vector<Values> random_points(const KnobSpace& space, const Values& row, std::size_t count,
                                  Random& random) {
  std::vector<Values> points;
  for (std::size_t tried = 0; points.size() < count && tried < 20 * count; ++tried) {
    KnobChoice choice;
    for (const Axis& axis : space.axes) {
      choice.push_back(static_cast<std::uint16_t>(
          std::uniform_int_distribution<std::size_t>(0, axis.values.size() - 1)(random)));
    }
    std::optional<Values> knobs = compose(space, choice);
    if (knobs && launched_alike(*knobs, row)) points.push_back(std::move(*knobs));
  }
  return points;
}

// Of runs that differ in who gets what share of a full link, as `advise` gives their spread.
double median_ns(const Schedule& schedule, const Machine& machine) {
  std::array<double, 5> times{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    SimulationOptions options;
    options.seed = 1 + i;
    times[i] = simulate(schedule, machine, options).makespan_ns;
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

struct Best {
  double time_ns = 0;
  std::string text;
};

// The fastest of them whose median is below `limit_ns`; what cannot be built counts for nothing. Those that
// take longer than `first_ns` at the first seed are not run again.
Best best_below(const std::vector<Values>& rivals, const Pattern& pattern, const Problem& problem,
                const Machine& machine, double first_ns, double limit_ns) {
  Best best{limit_ns, ""};
  std::mutex guard;
  tbb::parallel_for(std::size_t{0}, rivals.size(), [&](std::size_t i) {
    try {
      SimulationOptions options;
      options.seed = 1;
      options.give_up_after_ns = first_ns;
      const Schedule schedule = build_schedule(pattern, problem, machine, rivals[i]);
      if (simulate(schedule, machine, options).gave_up) return;
      const double time_ns = median_ns(schedule, machine);
      const std::lock_guard<std::mutex> lock(guard);
      if (time_ns < best.time_ns) best = {time_ns, key_of(rivals[i])};
    } catch (const UserError&) {
      return;
    }
  });
  return best;
}

// Says by what the row is beaten; whether it is.
bool check_row(const Candidate& row, const Problem& problem, const Machine& machine, std::size_t points,
               Random& random) {
  const KnobSpace space =
      problem.workload->space(*row.pattern, problem, machine, Values(problem.workload->knobs));
  const double row_ns = median_ns(build_schedule(*row.pattern, problem, machine, row.knobs), machine);
  bool beaten = false;
  const auto look = [&](std::string_view what, const std::vector<Values>& rivals) {
    const Best best = best_below(rivals, *row.pattern, problem, machine, row.time_ns, kBeaten * row_ns);
    if (best.text.empty()) return;
    beaten = true;
    fmt::print("  BEATEN: {} {:.1f} us, by {} {:.1f} us, {:.1f} % less: {}; row: {}\n", row.pattern->name,
               row_ns / 1000, what, best.time_ns / 1000, 100 * (1 - best.time_ns / row_ns), best.text,
               key_of(row.knobs));
  };
  look("one knob", single_changes(space, row.knobs));
  look("random knobs", random_points(space, row.knobs, points, random));
  return beaten;
}

int run(const std::string& name, int problems, std::size_t points, std::uint64_t first_seed) {
  const Machine machine = find_machine(name);
  int all = 0, beaten = 0;
  for (int i = 0; i < problems; ++i) {
    Random random(first_seed + static_cast<std::uint64_t>(i));
    const Problem problem = any_problem(machine, random);
    const auto cpu_s = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
    const double begin = cpu_s();
    const Advice advice = advise(problem, machine, {});
    fmt::print("{} {} {} on {} GPUs: {:.1f} s of CPU\n", name, problem.workload->name,
               problem.workload->size_text(problem), problem.gpus(), cpu_s() - begin);
    std::vector<const Candidate*> rows;
    for (const Candidate& row : advice.candidates) {
      if (!row.pattern->knobs.empty() && !row.pattern->vendor && !row.at_least_ns) rows.push_back(&row);
    }
    for (const Candidate* row : rows) {
      ++all;
      beaten += check_row(*row, problem, machine, points / rows.size(), random);
    }
    std::fflush(stdout);
  }
  fmt::print("{} problems, {} rows, {} beaten by more than 3 %\n", problems, all, beaten);
  return beaten == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tritax

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} MACHINE [PROBLEMS [RANDOM-POINTS [FIRST-SEED]]]\n", argv[0]);
    return 2;
  }
  const auto number = [&](int place, long usual) { return argc > place ? std::atol(argv[place]) : usual; };
  try {
    return tritax::run(argv[1], static_cast<int>(number(2, 14)), static_cast<std::size_t>(number(3, 500)),
                       static_cast<std::uint64_t>(number(4, 1)));
  } catch (const tritax::UserError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
