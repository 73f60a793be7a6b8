// Results in the forms that several commands print: the tax accounts, the GPUs, knobs and workload as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/table.hpp"
#include "model/machine/machine.hpp"
#include "model/patterns/pattern.hpp"
#include "model/workload/gemm_all_scatter.hpp"
#include "sim/simulate.hpp"

namespace tritax::cli {

// Nanoseconds in, microseconds out: the unit of everything that commands print.
inline double us(double ns) { return ns / 1000; }

nlohmann::ordered_json json_of(const GemmAllScatter& workload);
nlohmann::ordered_json json_of(const Knobs& knobs);
nlohmann::ordered_json json_of(const TimeAccount& account);
nlohmann::ordered_json json_of(const Taxes& taxes);

// Null for no value.
template <typename T>
nlohmann::ordered_json json_of(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// "256x256x64, comm 64x256, 48 comm CUs, …": the knobs that the pattern uses, in short.
std::string describe(const Knobs& knobs, const KnobUse& uses);

// One line a part of the makespan: time and share along the critical path.
Table account_table(const TimeAccount& account);

// The three taxes in both accounts, and the remainder of the second.
Table tax_table(const Taxes& taxes);

// One line a GPU and one for the node: times and the critical path's parts.
Table rank_table(const SimulationResult& result, const Machine& machine);

// One sentence about the links that moved data.
std::string describe_links(const SimulationResult& result, const Machine& machine, int gpus);

// [{"link", "bytes", "utilisation"}, …] of the links that moved data.
nlohmann::ordered_json links_json(const SimulationResult& result, const Machine& machine, int gpus);

// One line a link that moved data: bytes and mean use of the link over the run.
Table link_table(const SimulationResult& result, const Machine& machine, int gpus);

}  // namespace tritax::cli
