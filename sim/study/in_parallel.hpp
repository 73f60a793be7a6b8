// Many simulations side by side, as `tritax validate` and `tritax reproduce` run them: one for each row of a
// table, on all cores, with progress, until somebody says stop.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tritax {

struct ParallelOptions {
  int threads = 0;                                                  // 0: all cores
  std::function<void(std::size_t done, std::size_t all)> progress;  // from any thread, one at a time
  std::function<bool()> cancelled;  // asked before each simulation; true: leave the rest out
};

struct TaskOutcome {
  bool done = false;
  std::string failure;  // what the UserError said that it threw instead; empty as well when it was left out
};

// Calls `task` with every number below `count`, in any order; the outcomes come in that of the numbers. What
// a task throws besides UserError comes out of here.
std::vector<TaskOutcome> in_parallel(std::size_t count, const ParallelOptions& options,
                                     const std::function<void(std::size_t)>& task);

}  // namespace tritax
