// Handling of Ctrl-C and SIGTERM.
//
// By default both remove unfinished output files and end the program with code 130 or 143 at once. While an
// `InterruptibleWork` lives, the first signal only raises its flag, so that a search can stop and print the
// best result so far; the second signal ends the program. SIGHUP always ends the program, without unfinished
// files. SIGPIPE does not end it: see write_standard_output(). A failed assertion, or another abort, ends the
// program with code 1 after its message, without unfinished files.
#pragma once

#include <atomic>
#include <string>

namespace tritax::cli {

inline constexpr int kDefectExitCode = 1;
inline constexpr int kNobodyReadsExitCode = 141;  // 128 + SIGPIPE, as shells report it

// 130 after Ctrl-C, 143 after SIGTERM: 128 plus the signal, as shells report it.
int interrupted_exit_code();

// Call once, before anything else.
void install_interrupt_handler();

// Removes unfinished output files and ends the program, from a signal handler or where nothing else works.
[[noreturn]] void leave_at_once(int code);

class InterruptibleWork {
 public:
  InterruptibleWork();
  ~InterruptibleWork();
  InterruptibleWork(const InterruptibleWork&) = delete;
  InterruptibleWork& operator=(const InterruptibleWork&) = delete;

  // Raised by Ctrl-C and SIGTERM.
  std::atomic<bool>& flag() const;
  bool interrupted() const { return flag().load(); }
};

// Names a file that Ctrl-C removes before the program ends; spare_file() forgets it. At most
// `kMaxDoomedFiles` at a time; returns a slot for `spare_file`.
inline constexpr int kMaxDoomedFiles = 8;
int doom_file(const std::string& path);
void spare_file(int slot);

}  // namespace tritax::cli
