// What is wrong with a command line, for the programs whose options CLI11 reads: tritax and tritax-gpu.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tritax::cli {

// One line without an end, which names the program, the option or word at fault, what is like it, and the
// help to read: "tritax: '--mahcine' is no option of this command (did you mean '--machine'?); see 'tritax
// advise
// --help'".
std::string describe_parse_error(const CLI::App& program, const CLI::ParseError& error);

}  // namespace tritax::cli
