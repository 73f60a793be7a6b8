#include "model/core/read_file.hpp"

#include <fmt/format.h>

#include <cerrno>
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
  std::string text;
  std::vector<char> block(1 << 16);
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > largest) refuse(fmt::format("it is larger than {} bytes", largest));
  }
  if (file.bad()) refuse(std::strerror(errno));
  return text;
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

}  // namespace tritax
