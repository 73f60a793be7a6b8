// The pages of the command line name the options and commands that the program has.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

std::set<std::string> long_options(const std::string& text) {
  static const std::regex option("--[a-z][a-z-]*");
  return {std::sregex_token_iterator(text.begin(), text.end(), option), std::sregex_token_iterator()};
}

TEST(Docs, PagesNameTheOptionsOfHelp) {
  std::string help = test::run_tritax("--help").out;
  for (const std::string command :
       {"advise",         "taxonomy",        "layer",        "simulate",        "report",
        "report advise",  "report simulate", "report layer", "report validate", "compare",
        "explain",        "trace",           "check",        "evaluate",        "schedule",
        "patterns",       "patterns show",   "machines",     "machines show",   "scenarios",
        "scenarios list", "reproduce",       "measure",      "calibrate",       "validate",
        "tune",           "sweep",           "export",       "merge",           "describe",
        "play",           "roofline",        "model",        "import trace",    "import topology"}) {
    help += test::run_tritax(command + " --help").out;
  }
  std::set<std::string> in_help = long_options(help);
  in_help.erase("--version");
  std::set<std::string> in_commands = long_options(test::read_file(TRITAX_SOURCE_DIR "/docs/commands.md"));
  in_commands.erase("--version");
  EXPECT_EQ(in_commands, in_help);
  for (const std::string& option : long_options(test::read_file(TRITAX_SOURCE_DIR "/docs/cli.md"))) {
    EXPECT_TRUE(in_help.contains(option)) << option;
  }
}

TEST(Docs, ExamplesNameScenarioFilesThatExist) {
  static const std::regex file("scenarios/[a-z0-9-]+\\.toml");
  std::string text = test::read_file(TRITAX_SOURCE_DIR "/docs/cli.md");
  for (const std::string command :
       {"advise", "taxonomy", "layer", "simulate", "report", "compare", "explain", "trace", "check",
        "evaluate", "schedule", "reproduce", "measure", "calibrate", "validate", "tune"}) {
    text += test::run_tritax(command + " --help").out;
  }
  int found = 0;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), file); match != std::sregex_iterator();
       ++match) {
    EXPECT_TRUE(std::filesystem::exists(std::string(TRITAX_SOURCE_DIR "/") + match->str())) << match->str();
    ++found;
  }
  EXPECT_GT(found, 0);
}

TEST(Docs, CliPageNamesEveryCommand) {
  const std::string page = test::read_file(TRITAX_SOURCE_DIR "/docs/cli.md");
  for (const std::string command :
       {"advise",    "taxonomy", "layer",     "simulate", "report",   "compare",  "explain",
        "trace",     "check",    "evaluate",  "schedule", "patterns", "machines", "scenarios",
        "reproduce", "measure",  "calibrate", "validate", "tune",     "sweep",    "export",
        "merge",     "describe", "play",      "roofline", "model",    "import"}) {
    EXPECT_NE(page.find("| `" + command + "` |"), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace tritax
