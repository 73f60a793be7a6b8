// Names of the checker's findings in reports.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "model/schedule/check.hpp"

namespace tritax {

inline constexpr std::array<std::string_view, 7> kFindingNames{
    // by Finding::Kind
    "out-of-range",   "meaningless", "unsatisfiable-wait", "deadlock",
    "unordered-read", "resources",   "flag-race"};

constexpr std::string_view name_of(Finding::Kind kind) {
  return kFindingNames[static_cast<std::size_t>(kind)];
}

}  // namespace tritax
