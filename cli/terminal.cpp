#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "model/core/printable.hpp"

namespace tritax::cli {

namespace {

// It shows escape sequences as they are.
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

std::string wrapped(std::string_view text, std::size_t width) {
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

Progress::Progress(std::string label)
    : label_(std::move(label)),
      terminal_(isatty(STDERR_FILENO) == 1 && !is_dumb_terminal()),
      start_(Clock::now()),
      last_draw_(start_) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (drawn_) {
    tell("\r\x1b[K");
    std::fflush(stderr);
    drawn_ = false;
  }
}

void Progress::update(std::size_t done, std::size_t total) {
  using namespace std::chrono_literals;
  constexpr std::size_t kBarWidth = 30;
  if (!terminal_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now - start_ < 1s || now - last_draw_ < 100ms) {
    return;
  }
  last_draw_ = now;
  drawn_ = true;
  if (total == 0) {
    tell(fmt::format("\r{}: {} done\x1b[K", label_, done));
    std::fflush(stderr);
    return;
  }
  const std::size_t filled = kBarWidth * std::min(done, total) / total;
  tell(fmt::format("\r{} [{}{}] {}/{}\x1b[K", label_, std::string(filled, '#'),
                   std::string(kBarWidth - filled, '.'), done, total));
  std::fflush(stderr);
}

}  // namespace tritax::cli
