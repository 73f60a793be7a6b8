// Fuzz target of the reader of topologies: any text is either a topology or a UserError, and that is a
// machine on a base with links of its kind or a UserError.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "model/core/error.hpp"
#include "model/imports/topology.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array kBases{tritax::find_machine("mi300x-8"), tritax::find_machine("h200-8")};
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const tritax::TopologyFile topology = tritax::parse_topology_file(text, "fuzz.yml", "");
    const tritax::Machine& base = kBases[topology.kind == tritax::LinkKind::mesh ? 0 : 1];
    tritax::machine_of(topology, base, "fuzz", {});
  } catch (const tritax::UserError&) {
  }
  return 0;
}
