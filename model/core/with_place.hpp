// Puts a place in front of the messages of what knows none.
#pragma once

#include <string>
#include <utility>

#include "model/core/error.hpp"

namespace tritax {

// Calls `work`; a UserError that leaves it gets `place` in front ("file:line: ", "--flag: ").
template <typename Work>
decltype(auto) with_place(const std::string& place, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const UserError& error) {
    throw UserError(place + error.what());
  }
}

}  // namespace tritax
