// Any bytes as a measured timeline: events, which then stand beside a simulation, or a UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "model/timeline/perfetto.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto trace = tritax::parse_measured_trace({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (trace.operations > 1000) return 0;
    tritax::Schedule schedule;
    schedule.name = trace.schedule;
    schedule.ranks = trace.ranks;
    schedule.ops.resize(static_cast<std::size_t>(trace.operations));
    const std::string both = tritax::side_by_side_perfetto_json({}, schedule, tritax::Topology{}, trace);
    if (!nlohmann::json::accept(both)) std::abort();
  } catch (const tritax::UserError&) {
  }
  return 0;
}
