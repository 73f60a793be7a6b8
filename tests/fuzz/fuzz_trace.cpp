// Fuzz target of the reader of traces: any text is either a trace or a UserError, and what a trace holds are
// problems or a UserError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/core/error.hpp"
#include "model/imports/trace.hpp"
#include "model/imports/traced_problems.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const tritax::Trace trace =
        tritax::parse_trace(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.json");
    tritax::write_problems(tritax::problems_of(trace, "mi300x-8", 8), "fuzz");
  } catch (const tritax::UserError&) {
  }
  return 0;
}
