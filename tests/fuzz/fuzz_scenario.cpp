// libFuzzer target: whatever the bytes are, the parsers of scenarios and of published numbers return or throw
// UserError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/core/error.hpp"
#include "model/scenario/scenario.hpp"
#include "sim/study/reproduce.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    tritax::parse_scenarios(text, "fuzz.toml");
  } catch (const tritax::UserError&) {
  }
  try {
    tritax::parse_published(text, "fuzz.toml");
  } catch (const tritax::UserError&) {
  }
  return 0;
}
