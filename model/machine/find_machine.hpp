// Finds the text of a machine: compiled in, or in a file.
#pragma once

#include <string>

namespace tritax {

struct MachineText {
  std::string text;
  std::string origin;  // for messages
};

// The text of a shipped machine or of a file; a relative path starts at `folder`. Throws UserError (nearest
// name offered).
MachineText find_machine_text(const std::string& name_or_path, const std::string& folder = "");

}  // namespace tritax
