#include "model/core/command_line/parse_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "model/core/error.hpp"
#include "model/core/printable.hpp"

namespace tritax::parsing {

namespace {

// The innermost command on the command line, for messages about its options.
const CLI::App& selected_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  return *command;
}

// "tritax machines show", without the program's path.
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + ' ' + command.get_name();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands({})) {
    names.push_back(sub->get_name());
  }
  return names;
}

// "'--mahcine' is unknown (did you mean '--machine'?)" for a word that no option or command accepted.
std::string describe_unexpected(const CLI::App& program, const CLI::App& command) {
  const std::vector<std::string> remaining = program.remaining(true);
  const std::string word = remaining.empty() ? "" : remaining.front();
  const bool is_option = word.size() > 1 && word.front() == '-';
  const std::string nearest = nearest_name(word, is_option ? option_names(command) : command_names(command));
  return fmt::format("'{}' is {}{}", word, is_option ? "no option of this command" : "not expected here",
                     nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest));
}

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) {
    text.pop_back();
  }
  return presentable_line(text);
}

// "--machine: '--json' is an option and no value" for an option that took the next option as its value, "" if
// there is none.
std::string describe_taken_option(const CLI::App& command) {
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& value : option->results()) {
        if (value.size() < 2 || value.front() != '-' || command.get_option_no_throw(value) == nullptr)
          continue;
        return fmt::format("{}: '{}' is an option, not a value; give a value before it", option->get_name(),
                           value);
      }
    }
  }
  return "";
}

std::string error_line(const CLI::App& program, const std::string& what) {
  return fmt::format("{}: {}; see '{} --help'", program.get_name(), one_line(what),
                     full_name(selected_command(program)));
}

}  // namespace

std::string describe_missing_value(const CLI::App& program) {
  const std::string taken = describe_taken_option(selected_command(program));
  return taken.empty() ? "" : error_line(program, taken);
}

std::string describe_parse_error(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& command = selected_command(program);
  if (const std::string missing = describe_missing_value(program); !missing.empty()) return missing;
  // A missing option is often a misspelt one, so the message about the unexpected word is better.
  const bool unexpected = !program.remaining(true).empty();
  const bool no_command = command.get_require_subcommand_min() > 0 && !unexpected;
  const std::string what =
      unexpected   ? describe_unexpected(program, command)
      : no_command ? fmt::format("no command; give one of {}", fmt::join(command_names(command), ", "))
                   : error.what();
  return error_line(program, what);
}

}  // namespace tritax::parsing
