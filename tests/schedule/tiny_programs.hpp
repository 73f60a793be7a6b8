// Programs of signals, waits, stores and loads that are small enough to be executed in the test.
#pragma once

#include <rapidcheck.h>

#include <vector>

#include "tests/schedule/random_schedule.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {

// Random programs of a few workgroups over four flags and four tiles, against a search over all their
// executions.
struct TinyOp {
  OpKind kind;
  int index;
};

inline bool finishes_in_some_order(const std::vector<std::vector<TinyOp>>& programs) {
  std::vector<int> counter(4, 0);
  std::vector<std::size_t> next(programs.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t w = 0; w < programs.size(); ++w) {
      while (next[w] < programs[w].size()) {
        const TinyOp& op = programs[w][next[w]];
        if (op.kind == OpKind::wait && counter[static_cast<std::size_t>(op.index)] < 1) {
          break;
        }
        counter[static_cast<std::size_t>(op.index)] += op.kind == OpKind::signal ? 1 : 0;
        ++next[w];
        moved = true;
      }
    }
  }
  for (std::size_t w = 0; w < programs.size(); ++w) {
    if (next[w] < programs[w].size()) {
      return false;
    }
  }
  return true;
}

}  // namespace tritax
