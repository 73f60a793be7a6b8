// Many simulations side by side, as in `tritax validate` and `tritax reproduce`: one per row of a table, on
// all cores, with progress and cancellation.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tritax {

struct ParallelOptions {
  int threads = 0;                                                  // 0: all cores
  std::function<void(std::size_t done, std::size_t all)> progress;  // from any thread, one at a time
  std::function<bool()> cancelled;  // asked before each simulation; true: the rest is left out
};

struct TaskOutcome {
  bool done = false;
  std::string failure;  // message of the UserError of the task; empty if it was left out
};

// Calls `task` with every number below `count`, in any order; the outcomes are in the order of the numbers.
// Passes on any other exception of a task.
std::vector<TaskOutcome> in_parallel(std::size_t count, const ParallelOptions& options,
                                     const std::function<void(std::size_t)>& task);

}  // namespace tritax
