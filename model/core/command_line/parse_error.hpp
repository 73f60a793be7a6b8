// Describes what is wrong with a command line, for the programs whose options CLI11 reads: tritax and
// tritax-gpu.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tritax::parsing {

// One line without a line break. The line names the program, the option or word at fault, the nearest known
// name and the help to read: "tritax: '--mahcine' is no option of this command (did you mean '--machine'?);
// see 'tritax advise --help'".
std::string describe_parse_error(const CLI::App& program, const CLI::ParseError& error);

// The same line for a command line that was parsed, if an option took the next option as its value, which the
// parser allows for texts; "" otherwise. A file of such a name is written "./--json".
std::string describe_missing_value(const CLI::App& program);

}  // namespace tritax::parsing
