#include "python/bindings/calls.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "model/core/error.hpp"

namespace tritax::python {

namespace py = pybind11;

// Work of the calling thread during a call.
class Caller {
 public:
  Caller(Call& call, const py::object& progress) : call_(call), progress_(progress) {}

  // Runs without the interpreter's lock.
  void wait_for(const std::function<void(Call&)>& work) {
    std::thread worker([&] {
      try {
        work(call_);
      } catch (...) {
        failure_ = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      done_ = true;
      ended_.notify_one();
    });
    std::unique_lock lock(mutex_);
    constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
    while (!ended_.wait_for(lock, kBetweenLooks, [this] { return done_; })) {
      lock.unlock();
      look();
      lock.lock();
    }
    lock.unlock();
    worker.join();
  }

  // Runs with the interpreter's lock.
  void finish() {
    if (raised_) throw py::error_already_set(*raised_);
    if (failure_) std::rethrow_exception(failure_);
    tell();
  }

 private:
  void look() {
    if (raised_) return;
    const py::gil_scoped_acquire lock;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      tell();
    } catch (const py::error_already_set& error) {
      raised_.emplace(error);
      call_.stop_.store(true);
    }
  }

  void tell() {
    const std::uint64_t done = call_.done_.load(std::memory_order_relaxed);
    if (progress_.is_none() || done == told_) return;
    told_ = done;
    progress_(done, call_.total_.load(std::memory_order_relaxed));
  }

  Call& call_;
  const py::object& progress_;
  std::uint64_t told_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::exception_ptr failure_;
  std::optional<py::error_already_set> raised_;
};

int threads_of(int threads) {
  if (threads >= 0) return threads;
  throw UserError(fmt::format("threads: {} is not allowed; give 0 for all cores, or more", threads));
}

void run_call(const py::object& progress, const std::function<void(Call&)>& work) {
  Call call;
  Caller caller(call, progress);
  {
    const py::gil_scoped_release without_lock;
    caller.wait_for(work);
  }
  caller.finish();
}

}  // namespace tritax::python
