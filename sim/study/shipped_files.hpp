// Files that the program has inside, each found by its name, or one of the user's by its path: language
// models, networks, corpora.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tritax {

// Stems and texts; see tritax_embed() of cmake/TritaxModule.cmake.
using EmbeddedFiles = std::span<const std::pair<std::string_view, std::string_view>>;

// In order.
std::vector<std::string> names_of(EmbeddedFiles files);

struct FoundFile {
  std::string text;
  std::string name;    // without folder and ending
  std::string origin;  // for messages
};

// `what` a file is stands in messages ("network"); `others` are names that mean something else, offered too.
// Throws UserError: nearest name offered.
FoundFile find_file(EmbeddedFiles files, const std::string& name_or_path, std::string_view what,
                    const std::vector<std::string>& others = {});

}  // namespace tritax
