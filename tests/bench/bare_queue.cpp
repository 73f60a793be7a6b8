#include "tests/bench/bare_queue.hpp"

#include <benchmark/benchmark.h>

#include <ctime>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace tritax {

double bare_queue_seconds(std::uint64_t events, std::uint64_t pending) {
  using Event = std::pair<double, std::uint64_t>;
  std::minstd_rand random(1);
  std::uniform_real_distribution<double> delay(0.0, 1000.0);
  std::vector<double> delays(4096);  // drawn beforehand: the loop is to measure the queue
  for (double& d : delays) d = delay(random);
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue;
  for (std::uint64_t i = 0; i < pending; ++i) queue.push({delays[i % delays.size()], i});

  const std::clock_t start = std::clock();
  double now = 0;
  for (std::uint64_t i = 0; i < events; ++i) {
    now = queue.top().first;
    queue.pop();
    queue.push({now + delays[i % delays.size()], pending + i});
  }
  benchmark::DoNotOptimize(now);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace tritax
