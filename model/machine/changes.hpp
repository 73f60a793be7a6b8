// Changes parameters of a machine as a user asks: `--set fabric.link=32GB/s`, `--scale
// gpu.hbm_bandwidth=0.5`.
//
// A key is a key of machine files (parameters.cpp), or `nodes` or `gpus_per_node`. A value is a number with
// its unit in one piece ("32GB/s"); shares and counts need no unit. A changed machine is checked like a file:
// the range of every value, and the laws that parameters satisfy together (check_machine.hpp).
//
// Several parameters may describe one physical property. They stay in proportion to the changed parameter,
// unless they are changed as well:
//
//   fabric.link         fabric.store_egress, store_ingress, load_ingress, load_egress: a GPU's ports are
//                       its links; copy_engine.rate: what one engine gets through a link
//   gpus_per_node       on a mesh, the same four ports: with the number of a GPU's links
//   gpu.hbm_bandwidth   gpu.hbm_write_bandwidth
//   gpu.l2_bandwidth    gpu.l2_lock_step_bandwidth
//   gpu.lds_per_cu      gpu.lds_per_workgroup_max
//
// Everything else stays: latencies, efficiencies (shares of a rate), what one compute unit can issue.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"

namespace tritax {

enum class ChangeKind : std::uint8_t { set, scale };

// How messages name a change: "--set fabric.link=32GB/s" on a command line, "set fabric.link=32GB/s" for the
// argument `set` of a function call.
enum class GivenAs : std::uint8_t { option, argument };

struct ParameterChange {
  ChangeKind kind = ChangeKind::set;
  GivenAs given_as = GivenAs::option;
  std::string key;   // of a parameter, or "nodes" or "gpus_per_node"
  double value = 0;  // in `unit`, or the factor
  std::string unit;  // "" for a factor
  std::string text;  // as given: "fabric.link=32GB/s"

  std::string as_option() const;  // " --set fabric.link=32GB/s", with the quotes that a shell needs

  friend bool operator==(const ParameterChange&, const ParameterChange&) = default;
};

// "fabric.link=32GB/s" or, for scale, "fabric.link=0.5". Throws UserError: no such key (the nearest offered),
// no number, a unit that does not fit, a value out of range, a factor that is not above 0.
ParameterChange parse_change(ChangeKind kind, const std::string& text, GivenAs given_as = GivenAs::option);

// The machine with these changes and the proportional changes that follow; `Machine::changes` lists all of
// them. Throws UserError for a key that is changed twice, for scaling a parameter that the machine does not
// have, and for a changed machine that breaks a law of check_machine.hpp.
Machine changed(Machine machine, std::span<const ParameterChange> changes);

// One text per change: "fabric.link=32 GB/s (was 64 GB/s)".
std::vector<std::string> describe_changes(const Machine& machine);

}  // namespace tritax
