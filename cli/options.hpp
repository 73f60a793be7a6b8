// Options that several commands share, with one message style for bad values: flag, value, what is allowed.
#pragma once

#include <tbb/global_control.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/patterns/pattern.hpp"
#include "model/select/candidates.hpp"
#include "model/workload/gemm_all_scatter.hpp"

namespace CLI {
class App;
}

namespace tritax::cli {

// A whole number in [lowest, highest]; UserError that names `flag` otherwise, and says what is `allowed`
// where that is not just the range.
std::int64_t parse_integer(const std::string& text, const std::string& flag, std::int64_t lowest,
                           std::int64_t highest, const std::string& allowed = "");

// A tile shape of `dimensions` numbers: "256x256x64", "256x256". None may be above `largest`; that they are
// multiples of kTileStep is checked where it matters.
std::vector<std::int32_t> parse_shape(const std::string& text, const std::string& flag,
                                      std::size_t dimensions, std::int32_t largest);

// Index of `word` in `names`; UserError that lists them and offers the nearest otherwise.
std::size_t parse_name(const std::string& word, const std::string& flag,
                       std::span<const std::string_view> names);

// The machine that --machine names; UserError that names the flag otherwise.
Machine find_machine_option(const std::string& name);

// An option that takes a whole number in [lowest, highest].
void add_integer(CLI::App& app, const std::string& flag, std::optional<std::int32_t>& target,
                 const std::string& help, std::int32_t lowest, std::int32_t highest,
                 const std::string& allowed = "");
void add_integer(CLI::App& app, const std::string& flag, std::optional<std::int64_t>& target,
                 const std::string& help, std::int64_t lowest, std::int64_t highest);

// --workload -M -N -K --dtype --gpus: the workload by its sizes.
struct WorkloadOptions {
  std::string workload = "gemm-all-scatter";
  std::optional<std::int64_t> m;
  std::optional<std::int64_t> n;
  std::optional<std::int64_t> k;
  std::string dtype = "fp16";
  std::optional<int> gpus;
};
void add_workload_options(CLI::App& app, WorkloadOptions& options);

// Throws UserError when a size or the machine was not given.
void require_sizes(const WorkloadOptions& options, const std::string& machine);

// Checks the sizes; GPUs default to all of the machine's. Throws UserError, also for more GPUs than the
// machine has.
GemmAllScatter workload_of(const WorkloadOptions& options, const Machine& machine);

// --machine: a shipped name or a file.
void add_machine_option(CLI::App& app, std::string& name);

// One option a knob. What is not given stays free (advise) or at its default (schedule).
void add_knob_options(CLI::App& app, KnobPins& pins);

// Which of kKnobNames are given, in their order.
std::array<bool, kKnobNames.size()> given_knobs(const KnobPins& pins);

// The option of a knob: "--comm-tile" of "comm_tile".
std::string knob_option(std::string_view knob);

// `knobs` with the given ones replaced.
Knobs with_pins(Knobs knobs, const KnobPins& pins);

// --threads: how many cores the command uses; 0 or absent: all of them.
void add_threads_option(CLI::App& app, std::optional<int>& threads);

// Holds oneTBB to that many cores while it lives; null when the option was not given.
std::unique_ptr<tbb::global_control> limit_threads(const std::optional<int>& threads);

// --seed: of everything random; equal seeds give equal results.
void add_seed_option(CLI::App& app, std::optional<std::int64_t>& seed);

}  // namespace tritax::cli
