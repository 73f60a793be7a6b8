// What Tritax uses of oneTBB, without threads: loops, and calls at once. WebAssembly in a browser has one
// thread, and no library of oneTBB. Whoever builds for it finds this folder where others find oneTBB's
// headers, so that no source knows of it. Nothing may depend on how many threads there are, hence results are
// the same to the bit.
#pragma once

#include <cstddef>
#include <exception>

namespace tbb {

template <typename Value>
class blocked_range {
 public:
  blocked_range(Value begin, Value end, std::size_t /*grain*/ = 1) : begin_(begin), end_(end) {}
  Value begin() const { return begin_; }
  Value end() const { return end_; }

 private:
  Value begin_;
  Value end_;
};

struct simple_partitioner {};

// Calls `body(i)` for i from `first` to below `last`, in order. What it throws ends the loop.
template <typename Index, typename Body>
void parallel_for(Index first, Index last, const Body& body, const simple_partitioner& /*how*/ = {}) {
  for (Index i = first; i < last; ++i) body(i);
}

// Calls `body` with the range, in one piece.
template <typename Value, typename Body>
void parallel_for(const blocked_range<Value>& range, const Body& body,
                  const simple_partitioner& /*how*/ = {}) {
  if (range.begin() < range.end()) body(range);
}

class task_arena {
 public:
  enum class priority { low, normal, high };
  static constexpr int automatic = -1;

  explicit task_arena(int /*threads*/ = automatic, unsigned /*reserved*/ = 1, priority = priority::normal) {}
  template <typename Call>
  decltype(auto) execute(const Call& call) {
    return call();
  }
};

namespace this_task_arena {
inline int max_concurrency() { return 1; }
}  // namespace this_task_arena

namespace info {
inline int default_concurrency() { return 1; }
}  // namespace info

class global_control {
 public:
  enum parameter { max_allowed_parallelism };
  global_control(parameter, std::size_t) {}
};

// A task runs when it is given. What the first of them throws, wait() throws; until then no other runs.
class task_group {
 public:
  template <typename Task>
  void run(const Task& task) {
    if (cancelled_) return;
    try {
      task();
    } catch (...) {
      failure_ = std::current_exception();
      cancelled_ = true;
    }
  }
  void cancel() { cancelled_ = true; }
  void wait() {
    const std::exception_ptr failure = failure_;
    failure_ = nullptr;
    cancelled_ = false;
    if (failure) std::rethrow_exception(failure);
  }

 private:
  std::exception_ptr failure_;
  bool cancelled_ = false;
};

}  // namespace tbb
