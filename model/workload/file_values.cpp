#include "model/workload/file_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {

namespace {

struct NamedFile {
  std::string path;
  std::uint64_t content = 0;  // hash; 0: not a regular file

  bool operator==(const NamedFile& other) const { return path == other.path && content == other.content; }
};

struct NamedFiles {
  std::mutex mutex;
  std::vector<NamedFile> files;
};

NamedFiles& named_files() {
  static NamedFiles files;
  return files;
}

// FNV-1a (isthe.com/chongo/tech/comp/fnv).
std::uint64_t hash_of_content(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return 0;
  std::ifstream file(path, std::ios::binary);
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  std::array<char, 1 << 16> bytes{};
  while (file.read(bytes.data(), bytes.size()), file.gcount() > 0) {
    for (std::streamsize i = 0; i < file.gcount(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)])) * 0x100000001b3ULL;
    }
  }
  return hash;
}

NamedFile named_file(std::int64_t number) {
  NamedFiles& files = named_files();
  const std::lock_guard lock(files.mutex);
  TRITAX_ASSERT(static_cast<std::size_t>(number) <= files.files.size(), "somebody has named this file");
  return files.files[static_cast<std::size_t>(number) - 1];
}

}  // namespace

std::int64_t number_of_file(const std::string& path) {
  const NamedFile file{path, hash_of_content(path)};
  NamedFiles& files = named_files();
  const std::lock_guard lock(files.mutex);
  const auto found = std::find(files.files.begin(), files.files.end(), file);
  if (found != files.files.end()) return found - files.files.begin() + 1;
  files.files.push_back(file);
  return static_cast<std::int64_t>(files.files.size());
}

std::string path_beside(const std::string& path, const std::string& by) {
  const std::filesystem::path asked(path);
  std::error_code unknown;
  if (asked.is_absolute() || !std::filesystem::is_regular_file(by, unknown)) return path;
  return (std::filesystem::path(by).parent_path() / asked).lexically_normal().string();
}

std::string file_of(std::int64_t number) { return number <= 0 ? "" : named_file(number).path; }

std::string key_of_file(std::int64_t number) {
  if (number <= 0) return "";
  const NamedFile file = named_file(number);
  return file.content == 0 ? file.path : fmt::format("{}#{:016x}", file.path, file.content);
}

}  // namespace tritax
