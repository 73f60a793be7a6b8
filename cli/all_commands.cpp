// The commands of `tritax`.
#include <array>

#include "cli/program.hpp"

namespace tritax::cli {

std::span<const AddCommand> all_commands() {
  // The main job first.
  static constexpr auto kCommands = std::to_array<AddCommand>(
      {add_advise,  add_taxonomy,  add_layer,    add_model,     add_simulate, add_report,  add_compare,
       add_explain, add_trace,     add_check,    add_evaluate,  add_schedule, add_sweep,   add_export,
       add_merge,   add_patterns,  add_machines, add_scenarios, add_roofline, add_play,    add_reproduce,
       add_measure, add_calibrate, add_validate, add_tune,      add_import,   add_describe});
  return kCommands;
}

std::span<const AddCommand> reported_commands() {
  static constexpr auto kReported =
      std::to_array<AddCommand>({add_advise, add_simulate, add_layer, add_validate});
  return kReported;
}

}  // namespace tritax::cli
