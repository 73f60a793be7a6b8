// Forms of results that several commands print: the accounts of the time, the GPUs, and knobs and problems as
// JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/table.hpp"
#include "model/machine/machine.hpp"
#include "model/workload/workload.hpp"
#include "sim/simulate.hpp"

namespace tritax::cli {

// Nanoseconds to microseconds, the unit of all printed times.
inline double us(double ns) { return ns / 1000; }

// The workload's name and every field: {"name": "gemm-all-scatter", "m": 8192, …}.
nlohmann::ordered_json json_of(const Problem& problem);

// Every value by name. Shapes are text: "256x256x64".
nlohmann::ordered_json json_of(const Values& values);

// One value.
nlohmann::ordered_json json_of(const Values& values, std::size_t spec);

nlohmann::ordered_json json_of(const TimeAccount& account);
nlohmann::ordered_json json_of(const Taxes& taxes);

// Null for a missing value.
template <typename T>
nlohmann::ordered_json json_of(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// One line per part of the makespan: time and share along the critical path.
Table account_table(const TimeAccount& account);

// Savings of the run without each of the three taxes, and without all of them. A run that takes longer
// without a tax saves nothing, and its cells are empty; `describe_longer` (sim/study/explain.hpp) says how
// long, and why.
Table counterfactual_table(const Taxes& taxes);

// One line per GPU and one for the node: times and the critical path's parts. In the text form, GPUs with
// equal numbers share a line, and a harness without time has no column.
enum class Ranks : std::uint8_t { all, that_differ };
Table rank_table(const SimulationResult& result, const Machine& machine, Ranks shown);

// Hits of the operations on each buffer in caches and memories, over all GPUs.
Table cache_table(const SimulationResult& result, const std::vector<std::string>& buffers);

// The same for the operations on each die; "-" for operations that bypass the L2s.
Table die_table(const SimulationResult& result);

// Hit rates and bytes of the run, and "rows": one per GPU, die (null: bypasses the L2s), buffer and
// operation.
nlohmann::ordered_json caches_json(const SimulationResult& result, const std::vector<std::string>& buffers);

// Names by buffer number.
std::vector<std::string> buffer_names(const Schedule& schedule);

// One sentence about the links that moved data.
std::string describe_links(const SimulationResult& result, const Machine& machine, int gpus);

// [{"link", "bytes", "utilisation"}, …] of the links that moved data.
nlohmann::ordered_json links_json(const SimulationResult& result, const Machine& machine, int gpus);

// One line per link that moved data: bytes and mean use of the link over the run.
Table link_table(const SimulationResult& result, const Machine& machine, int gpus);

}  // namespace tritax::cli
