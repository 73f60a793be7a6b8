// Long calls from Python.
//
// The work runs on a separate thread, without the interpreter's lock. Meanwhile the calling thread checks for
// Ctrl-C and calls the progress callback, a few times per second. So callbacks need no thread safety, and
// other Python threads continue. An exception of the callback, or KeyboardInterrupt, stops the work, and is
// raised once the work has stopped.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <functional>

namespace tritax::python {

class Call {
 public:
  // Set when the work must stop; its result is then dropped.
  const std::atomic<bool>& stop() const { return stop_; }

  // Any thread may call it. `total` 0: unknown.
  void report(std::uint64_t done, std::uint64_t total) {
    total_.store(total, std::memory_order_relaxed);
    done_.store(done, std::memory_order_relaxed);
  }

 private:
  friend class Caller;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> total_{0};
};

// Number of cores of a call as given from Python; 0: all. Throws UserError for negative numbers.
int threads_of(int threads);

// `progress`: None, or a callable of (done, total). Exceptions of the work are rethrown here.
void run_call(const pybind11::object& progress, const std::function<void(Call&)>& work);

}  // namespace tritax::python
