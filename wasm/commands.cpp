// The commands of the program in the browser: what one page asks for. Those left out need files, processes or
// libraries that are not there.
#include <array>

#include "cli/program.hpp"
#include "wasm/form.hpp"

namespace tritax::cli {

std::span<const AddCommand> all_commands() {
  static constexpr auto kCommands =
      std::to_array<AddCommand>({add_advise, add_report, add_patterns, add_machines, add_form});
  return kCommands;
}

std::span<const AddCommand> reported_commands() {
  static constexpr auto kReported = std::to_array<AddCommand>({add_advise});
  return kReported;
}

}  // namespace tritax::cli
