// Any bytes as a result of this program: rows, each equal to itself in a comparison, or a UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/core/error.hpp"
#include "sim/study/compare.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file = tritax::parse_result({reinterpret_cast<const char*>(data), size}, "fuzz");
    const auto comparison = tritax::compare_results(file, file);
    if (comparison.rows.size() != file.rows.size()) std::abort();
    for (const auto& row : comparison.rows) {
      if (!row.is_equal() || !row.differences.empty()) std::abort();
    }
  } catch (const tritax::UserError&) {
  }
  return 0;
}
