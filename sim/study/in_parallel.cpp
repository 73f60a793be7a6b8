#include "sim/study/in_parallel.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <mutex>

#include "model/core/error.hpp"

namespace tritax {

std::vector<TaskOutcome> in_parallel(std::size_t count, const ParallelOptions& options,
                                     const std::function<void(std::size_t)>& task) {
  std::vector<TaskOutcome> outcomes(count);
  std::mutex mutex;
  std::size_t done = 0;
  const auto run_one = [&](std::size_t i) {
    if (options.cancelled && options.cancelled()) return;
    try {
      task(i);
      outcomes[i].done = true;
    } catch (const UserError& error) {
      outcomes[i].failure = error.what();
    }
    if (!options.progress) return;
    const std::lock_guard lock(mutex);
    options.progress(++done, count);
  };
  tbb::task_arena arena(options.threads > 0 ? options.threads : tbb::task_arena::automatic);
  arena.execute([&] { tbb::parallel_for(std::size_t{0}, count, run_one, tbb::simple_partitioner()); });
  return outcomes;
}

}  // namespace tritax
