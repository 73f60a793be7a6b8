// Shared by tests of several commands: small problems, and results as JSON.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/cli/run_tritax.hpp"

namespace tritax::test {

inline const std::string kSmallProblem = "-M 1000 -N 1024 -K 256 --machine mi300x-8 --gpus 4 ";
// A search simulates a thousand candidates.
inline const std::string kSmallSearch = "-M 500 -N 512 -K 256 --machine mi300x-8 --gpus 2 ";

// What a command said on standard error, without how far it was: a busy computer takes longer.
inline std::string messages_of(const Outcome& outcome) {
  static const std::regex progress("tritax: [^\n:]*: \\d+(/\\d+| done), \\d+ s[^\n]*\n");
  return std::regex_replace(outcome.err, progress, "");
}

// Standard output as JSON; it must be that and nothing else.
inline nlohmann::json run_json(const std::string& arguments) {
  const Outcome outcome = run_tritax(arguments + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << arguments << ": " << outcome.err;
  EXPECT_EQ(messages_of(outcome), "") << arguments;
  return nlohmann::json::parse(outcome.out);
}

}  // namespace tritax::test
