#include "model/workload/file_values.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {

namespace {

struct NamedFiles {
  std::mutex mutex;
  std::vector<std::string> paths;
};

NamedFiles& named_files() {
  static NamedFiles files;
  return files;
}

}  // namespace

std::int64_t number_of_file(const std::string& path) {
  NamedFiles& files = named_files();
  const std::lock_guard lock(files.mutex);
  const auto found = std::find(files.paths.begin(), files.paths.end(), path);
  if (found != files.paths.end()) return found - files.paths.begin() + 1;
  files.paths.push_back(path);
  return static_cast<std::int64_t>(files.paths.size());
}

std::string file_of(std::int64_t number) {
  if (number <= 0) return "";
  NamedFiles& files = named_files();
  const std::lock_guard lock(files.mutex);
  TRITAX_ASSERT(static_cast<std::size_t>(number) <= files.paths.size(), "somebody has named this file");
  return files.paths[static_cast<std::size_t>(number) - 1];
}

}  // namespace tritax
