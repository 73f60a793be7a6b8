// Lists all numbers of a machine file: key, field of `Machine`, dimension, bounds, meaning.
//
// The reader, the messages, `tritax machines show` and docs/machines.md all follow this one list. To add a
// parameter, add the field to model/machine/machine.hpp and one entry to the list in parameters.cpp.
//
// Keys are the field names without the unit suffix, because a file states the unit explicitly:
//
//   gpu.l2_bandwidth = { value = 17, unit = "TB/s", source = "…", how = "derived" }     →  Gpu::l2_gb_per_s
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/machine/machine.hpp"

namespace tritax {

enum class Dimension : std::uint8_t {
  count,           // whole number, unit ""
  share,           // fraction, internally 0 … 1
  boolean,         // true or false
  time,            // internally ns
  data,            // internally bytes
  rate,            // internally GB/s, decimal
  clock,           // internally GHz
  cycles,          // clock cycles
  bytes_per_clk,   // bytes per clock cycle
  flop_per_clk,    // floating-point operations per clock cycle
  power,           // internally W
  energy_per_byte  // internally pJ/B
};

// Allowed values, in internal units.
struct Bounds {
  double low = 0;
  double high = 0;
  bool low_allowed = true;  // false: the value must be greater than `low`
  double above_zero = 0;    // the smallest value besides 0, if 0 is allowed and means "none"
};

// The field that holds a value. A `MatrixRate` member exists once per dtype: [gpu.matrix.fp16],
// [gpu.matrix.bf16], …
using ParameterTarget =
    std::variant<int Gpu::*, double Gpu::*, bool Gpu::*, double MatrixRate::*, double KernelCosts::*,
                 double HostCosts::*, int CopyEngines::*, double CopyEngines::*, int LibraryCosts::*,
                 double LibraryCosts::*, int Fabric::*, double Fabric::*, int NodeNetwork::*,
                 double NodeNetwork::*>;

enum class Presence : std::uint8_t {
  required,
  optional,       // 0 when missing
  several_nodes,  // required when the machine has more than one node, else optional
};

struct ParameterSpec {
  std::string_view table;  // "gpu", "gpu.matrix", "host", "copy_engine", "library", "fabric", "network", or
                           // "" for the top level
  std::string_view name;   // "l2_bandwidth"
  ParameterTarget target;
  Dimension dimension = Dimension::count;
  Bounds bounds;
  std::string_view meaning;  // one line
  Presence presence = Presence::required;
};

// All parameters, in the order of the structs of machine.hpp.
std::span<const ParameterSpec> parameter_specs();

// The description of a parameter by its dotted key ("fabric.link", "gpu.matrix.fp16.load_clock"); nullptr if
// there is none.
const ParameterSpec* find_parameter_spec(std::string_view key);

// The value of a key, in internal units; `key` must be one of parameter_specs().
double parameter_value(const Machine& machine, std::string_view key);

// Sets only the field that the simulator reads, not Machine::parameters.
void set_parameter_value(Machine& machine, std::string_view key, double value);

// The problem of a value in `unit`: no such unit, out of range, not an integer; "" if there is none.
std::string value_problem(const ParameterSpec& spec, double value, std::string_view unit);

// Units that a dimension accepts, for messages: `ns, us, ms, s`.
std::string unit_names(Dimension dimension);

// Factor from `unit` to the internal unit of `dimension`; 0 when the dimension has no such unit.
double unit_factor(Dimension dimension, std::string_view unit);

}  // namespace tritax
