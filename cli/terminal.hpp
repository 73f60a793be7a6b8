// Terminal output: colours and a progress bar, and their replacements elsewhere.
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

// `text`, which may repeat input of a user or a schedule, with every control character except line breaks as
// \xNN, so that it cannot control the terminal.
std::string printable(std::string_view text);

// Columns of the terminal on standard output; 0 without a terminal, or if unknown.
std::size_t terminal_width();

// Columns of `text`: its code points.
std::size_t width_of(std::string_view text);

// `text` with a line break in place of the last blank before every `width` columns, and one at the end. 0:
// 100, or less on a narrower terminal.
std::string wrapped(std::string_view text, std::size_t width = 0);

// Writes to standard error. A failed write does not stop the program.
void tell(std::string_view text);

// Progress of long work, on standard error. On a terminal it is a bar, drawn once the work takes over a
// second. Elsewhere, as in a log, it is a line after ten seconds and then at doubling pauses, up to five
// minutes. A separate thread updates the elapsed time even while the work reports nothing. Any thread may
// update it.
class Progress {
 public:
  // `first_line`: time until the first line where there is no terminal.
  explicit Progress(std::string label, std::chrono::milliseconds first_line = std::chrono::seconds(10));
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `total` 0: unknown; then only a count is shown.
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
  std::mutex mutex_;  // guards all members above
  std::condition_variable end_;
  std::thread drawer_;
};

}  // namespace tritax::cli
