// Files embedded in the program, found by name, or files of the user, found by path: language models,
// networks, corpora.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tritax {

// Stems and texts; see tritax_embed() of cmake/TritaxModule.cmake.
using EmbeddedFiles = std::span<const std::pair<std::string_view, std::string_view>>;

// Names of the files, in order.
std::vector<std::string> names_of(EmbeddedFiles files);

struct FoundFile {
  std::string text;
  std::string name;    // without folder and ending
  std::string origin;  // for messages
};

// `what` names the kind of file in messages ("network"); `others` are other valid names, offered in messages
// too. Throws UserError with the nearest name.
FoundFile find_file(EmbeddedFiles files, const std::string& name_or_path, std::string_view what,
                    const std::vector<std::string>& others = {});

}  // namespace tritax
