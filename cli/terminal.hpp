// What a terminal gets: colours and a progress bar, and what stands for them elsewhere.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace tritax::cli {

// True when standard output is a terminal that knows colours (TERM is not "dumb") and NO_COLOR
// (https://no-color.org) is not set.
bool colour_on_stdout();

enum class Style { bold, good, bad, faint };

// `text` in a style, or as it is when standard output shows no colours.
std::string styled(std::string_view text, Style style);

// `text`, which may repeat what a user or a schedule gave, with every control character but line breaks as
// \xNN, so that none of it steers the terminal.
std::string printable(std::string_view text);

// Columns of the terminal that standard output is; 0 where it is none, or does not say.
std::size_t terminal_width();

// Columns that `text` takes: its code points.
std::size_t width_of(std::string_view text);

// `text` with a line break instead of the last blank before every `width` columns, and one at the end. 0:
// 100, or less on a narrower terminal.
std::string wrapped(std::string_view text, std::size_t width = 0);

// Writes to standard error. A message that nobody can read is no reason to stop.
void tell(std::string_view text);

// How far long work is, on standard error. On a terminal it is a bar, drawn once the work takes over a
// second; elsewhere, as in a log, a line after ten seconds and then at pauses that double, up to five
// minutes. A thread of its own keeps it going, with the time that has passed, also while the work has nothing
// to tell. Any thread may update it.
class Progress {
 public:
  // `first_line`: after how long the first line is written where there is no terminal.
  explicit Progress(std::string label, std::chrono::milliseconds first_line = std::chrono::seconds(10));
  ~Progress();  // clears
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `total` 0: not known yet; then there is only a count.
  void update(std::size_t done, std::size_t total);

  // Removes the bar, so that other text can be written.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  void write_line() const;
  std::string text() const;
  void keep_drawing();
  void keep_writing(std::chrono::milliseconds pause);

  std::string label_;
  bool drawn_ = false;
  bool ended_ = false;
  std::size_t done_ = 0;
  std::size_t total_ = 0;
  Clock::time_point start_;
  std::mutex mutex_;  // of all above
  std::condition_variable end_;
  std::thread drawer_;
};

}  // namespace tritax::cli
