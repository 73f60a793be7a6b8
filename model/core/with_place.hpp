// Adds a place in front of error messages of functions that do not know the place.
#pragma once

#include <string>
#include <utility>

#include "model/core/error.hpp"

namespace tritax {

// Calls `work`; a UserError from `work` gets `place` in front of its message ("file:line: ", "--flag: ").
template <typename Work>
decltype(auto) with_place(const std::string& place, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const UserError& error) {
    throw UserError(place + error.what());
  }
}

}  // namespace tritax
