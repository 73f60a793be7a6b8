// Long calls from Python.
//
// The work runs on a thread of its own, without the interpreter's lock. The calling thread meanwhile looks
// for Ctrl-C and calls the progress callback, a few times a second: callbacks need no care about threads,
// other Python threads go on, and an exception of the callback, or KeyboardInterrupt, stops the work and is
// raised once it has stopped.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <functional>

namespace tritax::python {

class Call {
 public:
  // Set once the work shall stop; what it returns then is dropped.
  const std::atomic<bool>& stop() const { return stop_; }

  // From any thread. `total` 0: not known.
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

// The cores that a call may use, as Python gave them: 0 for all. Throws UserError below that.
int threads_of(int threads);

// `progress`: None, or a callable of (done, total). What the work throws is thrown here.
void run_call(const pybind11::object& progress, const std::function<void(Call&)>& work);

}  // namespace tritax::python
