// Fuzz target of the machine reader: any text is either a machine or a UserError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/core/error.hpp"
#include "model/machine/machine.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tritax::parse_machine(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.toml");
  } catch (const tritax::UserError&) {
  }
  return 0;
}
