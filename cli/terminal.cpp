#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "model/core/printable.hpp"

namespace tritax::cli {

namespace {

// Such a terminal shows escape sequences as text.
bool is_dumb_terminal() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) == "dumb";
}

}  // namespace

bool colour_on_stdout() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0') && !is_dumb_terminal();
}

std::string styled(std::string_view text, Style style) {
  if (!colour_on_stdout()) {
    return std::string(text);
  }
  const int code = style == Style::bold ? 1 : style == Style::good ? 32 : style == Style::bad ? 31 : 2;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string printable(std::string_view text) { return without_controls(text, "\n"); }

std::size_t terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

// Counts code points, because cells may contain UTF-8 characters such as ×.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string wrapped(std::string_view text, std::size_t width) {
  if (width == 0) {
    constexpr std::size_t kReadable = 100;
    const std::size_t terminal = terminal_width();
    width = terminal == 0 ? kReadable : std::min(kReadable, terminal);
  }
  std::string lines;
  while (text.size() > width) {
    const std::size_t blank = text.rfind(' ', width);
    if (blank == std::string_view::npos) {
      break;
    }
    lines.append(text.substr(0, blank)).append("\n");
    text.remove_prefix(blank + 1);
  }
  return lines.append(text).append("\n");
}

void tell(std::string_view text) {
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
}

namespace {

// ", 12.3/s, 45 s left", assuming a constant rate.
std::string pace_text(std::size_t done, std::size_t total, double seconds) {
  if (done == 0 || done >= total || seconds <= 0) return "";
  const double rate = static_cast<double>(done) / seconds;
  const double left = static_cast<double>(total - done) / rate;
  return fmt::format(", {:.3g}/s, {:.0f} s left", rate, left);
}

}  // namespace

Progress::Progress(std::string label, std::chrono::milliseconds first_line)
    : label_(std::move(label)), start_(Clock::now()) {
  const bool bar = isatty(STDERR_FILENO) == 1 && !is_dumb_terminal();
  drawer_ = std::thread([this, bar, first_line] { bar ? keep_drawing() : keep_writing(first_line); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  if (drawer_.joinable()) drawer_.join();
  clear();
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (drawn_) {
    tell("\r\x1b[K");
    std::fflush(stderr);
    drawn_ = false;
  }
}

void Progress::update(std::size_t done, std::size_t total) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  total_ = total;
}

void Progress::keep_drawing() {
  using namespace std::chrono_literals;
  std::unique_lock lock(mutex_);
  auto pause = 900ms;  // shorter work needs no bar
  while (!end_.wait_for(lock, pause, [this] { return ended_; })) {
    draw();
    pause = 200ms;
  }
}

void Progress::keep_writing(std::chrono::milliseconds pause) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::minutes(5);
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, pause, [this] { return ended_; })) {
    write_line();
    pause = std::min(2 * pause, kLongest);
  }
}

// "120/816, 40 s, 3/s, 232 s left"
std::string Progress::text() const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const auto whole = static_cast<std::int64_t>(seconds);
  if (total_ == 0) return fmt::format("{} done, {} s", done_, whole);
  return fmt::format("{}/{}, {} s{}", done_, total_, whole, pace_text(done_, total_, seconds));
}

void Progress::draw() {
  constexpr std::size_t kBarWidth = 30;
  drawn_ = true;
  if (total_ == 0) {
    tell(fmt::format("\r{}: {}\x1b[K", label_, text()));
  } else {
    const std::size_t filled = kBarWidth * std::min(done_, total_) / total_;
    tell(fmt::format("\r{} [{}{}] {}\x1b[K", label_, std::string(filled, '#'),
                     std::string(kBarWidth - filled, '.'), text()));
  }
  std::fflush(stderr);
}

void Progress::write_line() const {
  tell(fmt::format("tritax: {}: {}\n", label_, text()));
  std::fflush(stderr);
}

}  // namespace tritax::cli
