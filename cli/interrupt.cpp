#include "cli/interrupt.hpp"

#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "model/core/error.hpp"

namespace tritax::cli {

namespace {

// A signal handler can reach only global state, and may use only lock-free atomics, unlink and _exit.
struct DoomedFile {
  std::atomic<bool> in_use{false};
  std::array<char, PATH_MAX> path{};
};
std::array<DoomedFile, kMaxDoomedFiles> doomed_files;
std::atomic<bool> work_is_interruptible{false};
std::atomic<bool> stop_requested{false};
std::atomic<int> stopped_by{SIGINT};

// `timeout` and some shells send one interrupt both to the process and to its group; the repetition is no
// second Ctrl-C.
constexpr std::int64_t kOneInterruptMs = 300;
std::atomic<std::int64_t> first_interrupt_ms{0};  // 0: none yet

std::int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Whether the running work will stop by itself.
bool leave_to_work(int signal) {
  if (!work_is_interruptible.load()) {
    return false;
  }
  std::int64_t first_ms = 0;
  if (first_interrupt_ms.compare_exchange_strong(first_ms, now_ms())) {
    stopped_by.store(signal);
    stop_requested.store(true);
    return true;
  }
  return now_ms() - first_ms < kOneInterruptMs;
}

extern "C" void on_signal(int signal) {
  if ((signal == SIGINT || signal == SIGTERM) && leave_to_work(signal)) {
    return;
  }
  leave_at_once(signal == SIGABRT ? kDefectExitCode : 128 + signal);
}

}  // namespace

void leave_at_once(int code) {
  for (DoomedFile& file : doomed_files) {
    if (file.in_use.load()) {
      unlink(file.path.data());
    }
  }
  _exit(code);
}

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGABRT, &action, nullptr);
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) {  // `nohup` ignores it on purpose
    sigaction(SIGHUP, &action, nullptr);
  }
  // Not SIG_IGN, because a program that `measure` starts would inherit it.
  action.sa_handler = [](int) {};
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);  // the write then fails with an error
}

InterruptibleWork::InterruptibleWork() {
  stop_requested.store(false);
  first_interrupt_ms.store(0);
  work_is_interruptible.store(true);
}

InterruptibleWork::~InterruptibleWork() { work_is_interruptible.store(false); }

std::atomic<bool>& InterruptibleWork::flag() const { return stop_requested; }

int interrupted_exit_code() { return 128 + stopped_by.load(); }

int doom_file(const std::string& path) {
  for (int slot = 0; slot < kMaxDoomedFiles; ++slot) {
    DoomedFile& file = doomed_files[static_cast<std::size_t>(slot)];
    if (!file.in_use.load() && path.size() < file.path.size()) {
      std::strncpy(file.path.data(), path.c_str(), file.path.size() - 1);
      file.in_use.store(true);
      return slot;
    }
  }
  throw UserError("'" + path + "': the path is too long");
}

void spare_file(int slot) { doomed_files[static_cast<std::size_t>(slot)].in_use.store(false); }

}  // namespace tritax::cli
