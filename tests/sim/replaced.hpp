// A valid file with one place replaced.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace tritax {

// `text` with the first `from`, which it must have, as `to`.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace tritax
