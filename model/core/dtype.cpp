#include "model/core/dtype.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/core/error.hpp"

namespace tritax {

DType parse_dtype(std::string_view name, const std::string& where) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kDTypeNames[static_cast<std::size_t>(i)] == name) return static_cast<DType>(i);
  }
  throw UserError(
      fmt::format("{}: unknown dtype '{}'; allowed: {}", where, name, fmt::join(kDTypeNames, ", ")));
}

}  // namespace tritax
