// libFuzzer target: whatever the bytes are, the reader of measurements returns rows or throws UserError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/core/error.hpp"
#include "sim/study/validate.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tritax::parse_measured(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.csv");
  } catch (const tritax::UserError&) {
  }
  return 0;
}
