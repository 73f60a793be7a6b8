#include "model/core/read_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "model/core/error.hpp"
#include "model/core/gzip.hpp"

namespace tritax {

namespace {

// Identity of a file, with the time of its last change, because a new file may get the number of a removed
// file.
using FileId = std::tuple<dev_t, ino_t, std::int64_t, std::int64_t>;

// The files that this process has read. An output that would replace one of these files is refused, and a
// pipe gives its text only once. Both hold for the process as a whole.
struct FilesRead {
  std::mutex mutex;
  std::set<FileId> files;
  std::map<FileId, std::string> pipes;
};

FilesRead& files_read() {
  static FilesRead files;
  return files;
}

std::optional<struct stat> status_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

FileId id_of(const struct stat& status) {
  const bool pipe = S_ISFIFO(status.st_mode);  // its times change with every read
  return {status.st_dev, status.st_ino, pipe ? 0 : status.st_mtim.tv_sec, pipe ? 0 : status.st_mtim.tv_nsec};
}

// A pipe that has a name in a file system, unlike /dev/stdin and /dev/fd/63.
bool is_named_pipe(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return !error && std::filesystem::is_fifo(target, error);
}

}  // namespace

bool was_read(const std::string& path) {
  const auto status = status_of(path);
  FilesRead& read = files_read();
  const std::lock_guard lock(read.mutex);
  return status && S_ISREG(status->st_mode) && read.files.count(id_of(*status)) > 0;
}

std::string read_file(const std::string& path, std::string_view wanted, std::size_t largest) {
  const auto refuse = [&](std::string_view reason) {
    throw UserError(fmt::format("{}: cannot be read: {}; give {}", path, reason, wanted));
  };
  std::error_code unknown;
  // Opening a directory succeeds; reading it gives nothing.
  if (std::filesystem::is_directory(path, unknown)) refuse("it is a directory");
  if (is_named_pipe(path)) refuse("it is a named pipe");
  FilesRead& read = files_read();
  const std::lock_guard lock(read.mutex);
  const auto status = status_of(path);
  const bool pipe = status && S_ISFIFO(status->st_mode);
  if (pipe) {
    const auto kept = read.pipes.find(id_of(*status));
    if (kept != read.pipes.end()) return kept->second;
  }
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
    const bool packed = is_gzip(text.empty() ? got : std::string_view(text));
    if (!packed && got.find('\0') != std::string_view::npos) refuse("it is not a text: it has a zero byte");
    text.append(got);
    check_size(text.size());
  }
  if (file.bad()) refuse(std::strerror(errno));
  if (is_gzip(text)) {
    try {
      text = gunzip(text, largest);
    } catch (const UserError& error) {
      refuse(error.what());
    }
    if (text.find('\0') != std::string::npos) refuse("it is not a text: it has a zero byte");
  }
  if (pipe) read.pipes.emplace(id_of(*status), text);
  if (status) read.files.insert(id_of(*status));
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
