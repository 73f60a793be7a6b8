#include "model/core/read_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {

std::string read_file(const std::string& path, std::string_view wanted, std::size_t largest) {
  const auto refuse = [&](std::string_view reason) {
    throw UserError(fmt::format("{}: cannot be read: {}; give {}", path, reason, wanted));
  };
  std::error_code unknown;
  // Opening a directory succeeds; reading it gives nothing.
  if (std::filesystem::is_directory(path, unknown)) refuse("it is a directory");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(std::strerror(errno));
  const auto check_size = [&](std::uintmax_t bytes) {
    if (bytes > largest) refuse(fmt::format("it is larger than {} MB", largest >> 20));
  };
  std::string text;
  // Pipes and devices have no size before they have been read.
  if (const std::uintmax_t bytes = std::filesystem::file_size(path, unknown); !unknown) {
    check_size(bytes);
    text.reserve(static_cast<std::size_t>(bytes));
  }
  std::vector<char> block(1 << 16);
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    const std::string_view got(block.data(), static_cast<std::size_t>(file.gcount()));
    if (got.find('\0') != std::string_view::npos) refuse("it is no text, it has a zero byte");
    text.append(got);
    check_size(text.size());
  }
  if (file.bad()) refuse(std::strerror(errno));
  return text;
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

std::size_t find_control(std::string_view text, std::string_view allowed) {
  constexpr unsigned char kFirstPrintable = 0x20, kDelete = 0x7f;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool control = byte < kFirstPrintable || byte == kDelete;
    if (control && allowed.find(text[i]) == std::string_view::npos) return i;
  }
  return std::string_view::npos;
}

}  // namespace tritax
