// Whatever the bytes are, reading a schedule either works or throws UserError. What was read can be written
// and read again without a change, and checked.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tritax::Schedule schedule;
  try {
    schedule = tritax::schedule_from_json({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  } catch (const tritax::UserError&) {
    return 0;
  }
  const std::string text = tritax::schedule_to_json(schedule);
  if (tritax::schedule_to_json(tritax::schedule_from_json(text, "written.json")) != text) {
    std::abort();
  }
  tritax::check_schedule(schedule);
  return 0;
}
