#include "sim/study/shipped_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"

namespace tritax {

namespace {

constexpr std::size_t kLargestFileBytes = 1 << 20;

}  // namespace

std::vector<std::string> names_of(EmbeddedFiles files) {
  std::vector<std::string> names;
  for (const auto& [name, text] : files) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

FoundFile find_file(EmbeddedFiles files, const std::string& name_or_path, std::string_view what,
                    const std::vector<std::string>& others) {
  for (const auto& [name, text] : files) {
    if (name == name_or_path)
      return {std::string(text), std::string(name), fmt::format("{}.toml (shipped)", name)};
  }
  const std::filesystem::path path(name_or_path);
  std::error_code ignored;
  if (path.has_parent_path() || path.extension() == ".toml" ||
      std::filesystem::is_regular_file(path, ignored)) {
    return {read_file(name_or_path, fmt::format("the path of a {} file (TOML)", what), kLargestFileBytes),
            path.stem().string(), name_or_path};
  }
  std::vector<std::string> known = names_of(files);
  known.insert(known.end(), others.begin(), others.end());
  const std::string nearest = nearest_name(name_or_path, known);
  throw UserError(fmt::format(
      "unknown {} \"{}\"{}; shipped: {}; or give the path of a TOML file", what, name_or_path,
      nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest), fmt::join(known, " ")));
}

}  // namespace tritax
