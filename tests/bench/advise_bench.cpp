// The search of `tritax advise` on two threads. Goal: 300 candidates in under 5 s.
#include <benchmark/benchmark.h>

#include <chrono>

#include "sim/study/advise.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax {
namespace {

void advise_8192x4608x36864(benchmark::State& state) {
  const Machine machine = find_machine("mi300x-8");
  const Problem problem = problem_of(GemmAllScatter{8192, 4608, 36864, DType::fp16, 8});
  AdviseOptions options;
  options.threads = 2;
  Advice advice;
  double seconds = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    advice = advise(problem, machine, options);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  state.counters["candidates"] = static_cast<double>(advice.evaluated + advice.pruned);
  state.counters["evaluated"] = static_cast<double>(advice.evaluated);
  state.counters["given_up"] = static_cast<double>(advice.given_up);
  state.counters["pruned"] = static_cast<double>(advice.pruned);
  state.counters["seconds"] = seconds / static_cast<double>(state.iterations());
}
BENCHMARK(advise_8192x4608x36864)->Unit(benchmark::kSecond)->UseRealTime();

}  // namespace
}  // namespace tritax
