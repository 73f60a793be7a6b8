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

// An option with a whole number in [lowest, highest].
void add_integer(CLI::App& app, const std::string& flag, std::optional<std::int32_t>& target,
                 const std::string& help, std::int32_t lowest, std::int32_t highest,
                 const std::string& allowed = "");
void add_integer(CLI::App& app, const std::string& flag, std::optional<std::int64_t>& target,
                 const std::string& help, std::int64_t lowest, std::int64_t highest);

inline constexpr const char* kWorkloadGroup = "Workload";
inline constexpr const char* kKnobGroup = "Knobs";

// The workload of --workload anywhere on the command line, which decides the options of the command. The
// first of the registry without the option, or for an unknown name, which the option itself then refuses.
const Workload& workload_of_command_line(int argc, const char* const* argv);

// --workload, for commands that have the options of `workload`.
void add_workload_option(CLI::App& app, const Workload& workload);

// --workload and one option per field: -M, -N, -K, --dtype, --gpus. Sets the problem to this workload.
void add_problem_options(CLI::App& app, const Workload& workload, Asked& asked);

// The field of that name or option ("M"); null if there is none.
const Spec* find_field(const Workload& workload, std::string_view name);

// A range of values of a field as an axis: "M=1:16384:x2" multiplies, "M=64:512:+64" adds. Throws UserError
// for a bad range, and for a field that is already given.
void add_sweep(Asked& asked, const std::string& text);

// "-M, -N, -K": the required options.
std::string required_options(const Workload& workload);

// The problem of the options on that machine, checked; gpus defaults to all GPUs of the machine. Throws
// UserError, also for more GPUs than the machine has.
Problem problem_on(Problem problem, const Machine& machine,
                   std::optional<std::int64_t> message_bytes = std::nullopt);

// Throws UserError when a field that has no usual value, or the machine, was not given.
void require_problem(const Problem& problem, const std::string& machine,
                     std::optional<std::int64_t> message_bytes = std::nullopt);

// One option per knob. Knobs that are not given stay free (advise) or at their defaults (schedule).
void add_knob_options(CLI::App& app, const Workload& workload, Asked& asked);

// Sets one value from text ("256x256x64", "on", "64KiB"), or from the text that its table has for a value
// that are not given. Throws UserError that begins with `place`.
void give_text(Values& values, std::size_t spec, const std::string& text, const std::string& place);

// Form of the value of a knob's option, for tables: " MxNxK", " on|off", "".
std::string value_form(const Spec& spec);

// The given values of `pins` among the knobs of `workload`, by name: `pins` may have been read with the
// options of another workload. Throws UserError that begins with the option for a knob that `workload` does
// not have; `what` names the user of the knobs: "scenario 'one'".
Values pins_of(const Workload& workload, const Values& pins, const std::string& what);

// --threads: number of cores of the command; 0 or absent: all.
void add_threads_option(CLI::App& app, std::optional<int>& threads);

// Limits oneTBB to that many cores while it lives; null when the option was not given.
std::unique_ptr<tbb::global_control> limit_threads(const std::optional<int>& threads);

// Throws UserError when two of `files` are the same file, whatever their names, because its rows would count
// twice.
void require_each_once(const std::vector<std::string>& files, std::string_view flag);

// --seed of all random numbers; equal seeds give equal results.
void add_seed_option(CLI::App& app, std::optional<std::int64_t>& seed);

}  // namespace tritax::cli
