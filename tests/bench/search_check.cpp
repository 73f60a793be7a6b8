// Whether `tritax advise` finds what it should: for random problems on a machine, no single change of a knob
// of the winner, and no random point of the whole space, is faster by more than 1 %. Takes minutes, so it is
// no test of ctest.
//
//   tritax_search_check MACHINE [PROBLEMS [RANDOM-POINTS [FIRST-SEED]]]
//
// Prints a line a problem; exits with 1 if a winner was beaten.
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "sim/study/advise.hpp"
#include "tests/study/single_changes.hpp"

namespace tritax {
namespace {

constexpr double kBeaten = 0.99;  // of the winner's time

using Random = std::mt19937_64;

template <typename T>
const T& any_of(const std::vector<T>& values, Random& random) {
  return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

// Log-uniform extents, decode and prefill sizes, all dtypes that the machine has, 2 GPUs to all.
GemmAllScatter any_problem(const Machine& machine, Random& random) {
  const std::vector<std::int64_t> rows{1, 16, 64, 200, 512, 1024, 2048, 4096, 8192};
  const std::vector<std::int64_t> cols{512, 1024, 2048, 3584, 4096, 4608, 8192, 10240, 14336};
  const std::vector<std::int64_t> depths{256, 1024, 2048, 4096, 8192, 14336, 28672};
  std::vector<DType> dtypes;
  for (const DType dtype : {DType::fp16, DType::bf16, DType::fp8, DType::fp32}) {
    if (machine.gpu.rate(dtype).flop_per_clk_per_cu > 0) dtypes.push_back(dtype);
  }
  std::vector<int> gpus;
  for (int count = 2; count <= machine.gpu_count(); count *= 2) gpus.push_back(count);
  return {any_of(rows, random), any_of(cols, random), any_of(depths, random), any_of(dtypes, random),
          any_of(gpus, random)};
}

struct Rival {
  const Pattern* pattern = nullptr;
  Values knobs;
};

std::vector<Rival> random_points(const Problem& problem, const Machine& machine, std::size_t count,
                                 Random& random) {
  std::vector<std::pair<const Pattern*, KnobSpace>> spaces;
  for (const Pattern& pattern : problem.workload->patterns) {
    if (pattern.knobs.empty()) continue;
    spaces.emplace_back(&pattern,
                        problem.workload->space(pattern, problem, machine, Values(problem.workload->knobs)));
  }
  std::vector<Rival> points;
  for (std::size_t tried = 0; points.size() < count && tried < 20 * count; ++tried) {
    const auto& [pattern, space] = any_of(spaces, random);
    KnobChoice choice;
    for (const Axis& axis : space.axes) {
      choice.push_back(static_cast<std::uint16_t>(
          std::uniform_int_distribution<std::size_t>(0, axis.values.size() - 1)(random)));
    }
    if (auto knobs = compose(space, choice)) points.push_back({pattern, std::move(*knobs)});
  }
  return points;
}

// The fastest of them that beats `limit_ns`, and its time; what cannot be built counts for nothing.
struct Best {
  double time_ns = 0;
  std::string text;
};
Best best_below(const std::vector<Rival>& rivals, const Problem& problem, const Machine& machine,
                double limit_ns) {
  Best best{limit_ns, ""};
  std::mutex guard;
  tbb::parallel_for(std::size_t{0}, rivals.size(), [&](std::size_t i) {
    const Rival& rival = rivals[i];
    try {
      SimulationOptions options;
      options.seed = 1;
      options.give_up_after_ns = limit_ns;
      const SimulationResult result =
          simulate(build_schedule(*rival.pattern, problem, machine, rival.knobs), machine, options);
      const std::lock_guard<std::mutex> lock(guard);
      if (result.gave_up || result.makespan_ns >= best.time_ns) return;
      best = {result.makespan_ns, fmt::format("{} {}", rival.pattern->name, key_of(rival.knobs))};
    } catch (const UserError&) {
      return;
    }
  });
  return best;
}

int run(const std::string& name, int problems, std::size_t points, std::uint64_t first_seed) {
  const Machine machine = find_machine(name);
  int beaten = 0;
  for (int i = 0; i < problems; ++i) {
    Random random(first_seed + static_cast<std::uint64_t>(i));
    const GemmAllScatter shape = any_problem(machine, random);
    const Problem problem = problem_of(shape);
    const auto cpu_s = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
    const double begin = cpu_s();
    const Advice advice = advise(problem, machine, {});
    const double search_s = cpu_s() - begin;
    const Candidate* winner = nullptr;
    for (const Candidate& candidate : advice.candidates) {
      if (winner == nullptr && !candidate.pattern->knobs.empty()) winner = &candidate;
    }
    if (winner == nullptr) continue;
    std::vector<Rival> changes;
    for (const GemmKnobs& knobs : single_changes(gemm_knobs_of(winner->knobs), *winner->pattern, machine)) {
      changes.push_back({winner->pattern, values_of(knobs)});
    }
    const double limit_ns = kBeaten * winner->time_ns;
    const Best change = best_below(changes, problem, machine, limit_ns);
    const Best point =
        best_below(random_points(problem, machine, points, random), problem, machine, limit_ns);
    fmt::print("{} {} on {} GPUs: {} {:.1f} us ({} simulated, {} pruned, {:.1f} s of CPU)", name,
               problem.workload->size_text(problem), shape.gpus, winner->pattern->name,
               winner->time_ns / 1000, advice.evaluated, advice.pruned, search_s);
    for (const auto& [what, found] : {std::pair{"one knob", change}, std::pair{"random", point}}) {
      if (found.text.empty()) continue;
      ++beaten;
      fmt::print("\n  BEATEN by {}: {:.1f} us, {:.1f} % faster: {}\n  winner: {}", what, found.time_ns / 1000,
                 100 * (1 - found.time_ns / winner->time_ns), found.text, key_of(winner->knobs));
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  fmt::print("{} problems, {} beaten\n", problems, beaten);
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
    return tritax::run(argv[1], static_cast<int>(number(2, 20)), static_cast<std::size_t>(number(3, 2000)),
                       static_cast<std::uint64_t>(number(4, 1)));
  } catch (const tritax::UserError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
