// What is wrong with a command line, for the programs whose options CLI11 reads: tritax and tritax-gpu.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tritax::parsing {

// One line without an end, which names the program, the option or word at fault, what is like it, and the
// help to read: "tritax: '--mahcine' is no option of this command (did you mean '--machine'?); see 'tritax
// advise
// --help'".
std::string describe_parse_error(const CLI::App& program, const CLI::ParseError& error);

// Likewise after a command line was parsed: "" unless an option took the one behind it for its value, as the
// parser lets texts do. A file of such a name is "./--json".
std::string describe_missing_value(const CLI::App& program);

}  // namespace tritax::parsing
