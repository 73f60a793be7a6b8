// Options that several commands share, with one message style for bad values: flag, value, what is allowed.
#pragma once

#include <tbb/global_control.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/axes.hpp"
#include "model/machine/machine.hpp"
#include "model/workload/parse_value.hpp"
#include "model/workload/workload.hpp"

namespace CLI {
class App;
}

namespace tritax::cli {

// The machine that --machine names, with the changes; UserError that names the flag otherwise.
Machine find_machine_option(const std::string& name, const std::vector<ParameterChange>& changes = {});

// An option that takes a whole number in [lowest, highest].
void add_integer(CLI::App& app, const std::string& flag, std::optional<std::int32_t>& target,
                 const std::string& help, std::int32_t lowest, std::int32_t highest,
                 const std::string& allowed = "");
void add_integer(CLI::App& app, const std::string& flag, std::optional<std::int64_t>& target,
                 const std::string& help, std::int64_t lowest, std::int64_t highest);

inline constexpr const char* kWorkloadGroup = "Workload";
inline constexpr const char* kKnobGroup = "Knobs";

// The workload that --workload names anywhere on the command line: its options are those that the command
// has. The first of the registry where there is none, or no such; the option refuses that one.
const Workload& workload_of_command_line(int argc, const char* const* argv);

// --workload, for commands that have the options of `workload`.
void add_workload_option(CLI::App& app, const Workload& workload);

// --workload and one option a field: -M, -N, -K, --dtype, --gpus. The problem becomes one of that workload.
void add_problem_options(CLI::App& app, const Workload& workload, Asked& asked);

// The field of that name, or whose option is called so ("M"); null if there is none.
const Spec* find_field(const Workload& workload, std::string_view name);

// A range of values of a field as an axis: "M=1:16384:x2" in steps of a factor, "M=64:512:+64" of a sum.
// Throws UserError for what is no range, and for a field that is given already.
void add_sweep(Asked& asked, const std::string& text);

// "-M, -N, -K": what has to be given.
std::string required_options(const Workload& workload);

// What the options say on that machine, checked; GPUs default to all of it. Throws UserError, also for more
// than it has.
Problem problem_on(Problem problem, const Machine& machine,
                   std::optional<std::int64_t> message_bytes = std::nullopt);

// Throws UserError when a field that has no usual value, or the machine, was not given.
void require_problem(const Problem& problem, const std::string& machine,
                     std::optional<std::int64_t> message_bytes = std::nullopt);

// One option a knob. What is not given stays free (advise) or at its default (schedule).
void add_knob_options(CLI::App& app, const Workload& workload, Asked& asked);

// Gives one value as text ("256x256x64", "on", "64KiB"), and what its table says of a value that nobody
// gives. Throws UserError that begins with `place`.
void give_text(Values& values, std::size_t spec, const std::string& text, const std::string& place);

// What stands behind the option of a knob in tables: " MxNxK", " on|off", "".
std::string value_form(const Spec& spec);

// The given ones of `pins` among the knobs of `workload`, by their names: they may have been read with the
// options of another one. Throws UserError that begins with the option for a knob that it does not have;
// `what` names whose knobs these were to be: "scenario 'one'".
Values pins_of(const Workload& workload, const Values& pins, const std::string& what);

// --threads: how many cores the command uses; 0 or absent: all of them.
void add_threads_option(CLI::App& app, std::optional<int>& threads);

// Holds oneTBB to that many cores while it lives; null when the option was not given.
std::unique_ptr<tbb::global_control> limit_threads(const std::optional<int>& threads);

// Throws UserError when one of `files` is another one again, whatever its name: its rows would count twice.
void require_each_once(const std::vector<std::string>& files, std::string_view flag);

// --seed: of everything random; equal seeds give equal results.
void add_seed_option(CLI::App& app, std::optional<std::int64_t>& seed);

}  // namespace tritax::cli
