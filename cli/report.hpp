// Results in the forms that several commands print: the accounts of the time, the GPUs, knobs and problems as
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

// Nanoseconds in, microseconds out: the unit of everything that commands print.
inline double us(double ns) { return ns / 1000; }

// The workload's name and every field: {"name": "gemm-all-scatter", "m": 8192, …}.
nlohmann::ordered_json json_of(const Problem& problem);

// Every value by its name. Shapes are text: "256x256x64".
nlohmann::ordered_json json_of(const Values& values);

// One of them.
nlohmann::ordered_json json_of(const Values& values, std::size_t spec);

nlohmann::ordered_json json_of(const TimeAccount& account);
nlohmann::ordered_json json_of(const Taxes& taxes);

// Null for no value.
template <typename T>
nlohmann::ordered_json json_of(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// One line a part of the makespan: time and share along the critical path.
Table account_table(const TimeAccount& account);

// What the run saves without each of the three taxes, and without all of them. What takes longer without a
// tax saves nothing, and its cells are empty; `describe_longer` (sim/study/explain.hpp) says how long, and
// why.
Table counterfactual_table(const Taxes& taxes);

// One line a GPU and one for the node: times and the critical path's parts. For people GPUs with the same
// numbers are one line, and a harness that takes no time has no column.
enum class Ranks : std::uint8_t { all, that_differ };
Table rank_table(const SimulationResult& result, const Machine& machine, Ranks shown);

// What caches and memories had for the operations on each buffer, over all GPUs.
Table cache_table(const SimulationResult& result, const std::vector<std::string>& buffers);

// Likewise for the operations on each die; "-" for what passes the L2s by.
Table die_table(const SimulationResult& result);

// Hit rates and bytes of the run, and "rows": one a GPU, die (null: past the L2s), buffer and operation.
nlohmann::ordered_json caches_json(const SimulationResult& result, const std::vector<std::string>& buffers);

// By number.
std::vector<std::string> buffer_names(const Schedule& schedule);

// One sentence about the links that moved data.
std::string describe_links(const SimulationResult& result, const Machine& machine, int gpus);

// [{"link", "bytes", "utilisation"}, …] of the links that moved data.
nlohmann::ordered_json links_json(const SimulationResult& result, const Machine& machine, int gpus);

// One line a link that moved data: bytes and mean use of the link over the run.
Table link_table(const SimulationResult& result, const Machine& machine, int gpus);

}  // namespace tritax::cli
