// tritax describe: a description of the program for shells, which complete its commands and options, and for
// `man`, from the same tables as --help.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"
#include "cli/result_tables.hpp"
#include "cli/version.hpp"
#include "model/core/dtype.hpp"
#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/select/selector.hpp"
#include "model/workload/parse_value.hpp"
#include "model/workloads/registry.hpp"
#include "sim/study/language_model.hpp"

namespace tritax::cli {

namespace {

struct DescribedOption {
  std::string name;    // "--machine"; "FILE" for positionals
  std::string others;  // further spellings: "-o"
  std::string help;
  std::string form;  // "NAME|FILE"; "" for flags
  bool positional = false;
};

struct DescribedCommand {
  std::string path;  // "report advise"
  std::string help;
  std::string footer;
  std::vector<DescribedOption> options;
};

DescribedOption described(const CLI::Option& option) {
  DescribedOption one;
  one.help = option.get_description();
  one.positional = option.get_lnames().empty() && option.get_snames().empty();
  if (option.get_items_expected_max() > 0) one.form = option.get_type_name();
  if (one.positional) {
    one.name = one.form.empty() || one.form == "TEXT" ? option.get_name(true) : one.form;
    return one;
  }
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  one.name = names.front();
  one.others = fmt::format("{}", fmt::join(names.begin() + 1, names.end(), ", "));
  return one;
}

// Adds options that are missing: commands have other options with another workload.
void add_described(std::vector<DescribedCommand>& commands, const CLI::App& app, const std::string& path) {
  auto found = std::find_if(commands.begin(), commands.end(),
                            [&](const DescribedCommand& one) { return one.path == path; });
  if (found == commands.end())
    found = commands.insert(commands.end(), {path, app.get_description(), app.get_footer(), {}});
  for (const CLI::Option* option : app.get_options()) {
    DescribedOption one = described(*option);
    const bool known = std::any_of(found->options.begin(), found->options.end(),
                                   [&](const DescribedOption& other) { return other.name == one.name; });
    if (!known) found->options.push_back(std::move(one));
  }
  for (const CLI::App* below : app.get_subcommands({}))
    add_described(commands, *below, path.empty() ? below->get_name() : path + ' ' + below->get_name());
}

// All commands; the first entry is the program itself.
std::vector<DescribedCommand> described_commands() {
  std::vector<DescribedCommand> commands;
  for (const Workload* workload : workloads()) {
    const Program program = program_of(*workload);
    add_described(commands, *program.app, "");
  }
  return commands;
}

// Known values of options that name something.
std::map<std::string, std::vector<std::string>> known_values() {
  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::string>& patterns = values["--pattern"];
  for (const Workload* workload : workloads()) {
    values["--workload"].emplace_back(workload->name);
    for (const Pattern& pattern : workload->patterns) {
      if (std::find(patterns.begin(), patterns.end(), pattern.name) == patterns.end())
        patterns.emplace_back(pattern.name);
    }
  }
  for (const Selector& selector : selectors()) values["--selector"].emplace_back(selector.name);
  for (const std::string_view name : kDTypeNames) values["--dtype"].emplace_back(name);
  values["--machine"] = shipped_machines();
  values["--model"] = shipped_models();
  return values;
}

// Command words below `path`: "report" has "advise".
std::vector<std::string> below(const std::vector<DescribedCommand>& commands, const std::string& path) {
  std::vector<std::string> names;
  const std::string prefix = path.empty() ? "" : path + ' ';
  for (const DescribedCommand& one : commands) {
    if (one.path.empty() || !one.path.starts_with(prefix)) continue;
    std::string name = one.path.substr(prefix.size());
    if (!name.empty() && name.find(' ') == std::string::npos) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> option_names(const DescribedCommand& command) {
  std::vector<std::string> names;
  for (const DescribedOption& one : command.options) {
    if (!one.positional) names.push_back(one.name);
  }
  return names;
}

std::string bash_text() {
  const std::vector<DescribedCommand> commands = described_commands();
  std::string text =
      "# bash completion of tritax; written by 'tritax describe bash'\n"
      "_tritax() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= words= one\n"
      "  COMPREPLY=()\n"
      "  for one in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path $one\" in\n";
  std::vector<std::string> paths;
  for (const DescribedCommand& one : commands) {
    if (one.path.empty()) continue;
    const std::size_t blank = one.path.rfind(' ');
    const std::string above = blank == std::string::npos ? "" : one.path.substr(0, blank);
    paths.push_back(
        fmt::format("      \"{} {}\") path='{}' ;;\n", above, one.path.substr(blank + 1), one.path));
  }
  text += fmt::format("{}    esac\n  done\n  case $before in\n", fmt::join(paths, ""));
  for (const auto& [option, values] : known_values())
    text += fmt::format("    {}) words='{}' ;;\n", option, fmt::join(values, " "));
  text +=
      "  esac\n"
      "  if [[ -z $words && ( $word == -* || -z $path || $path == report ) ]]; then\n"
      "    case $path in\n";
  for (const DescribedCommand& one : commands) {
    std::vector<std::string> words = below(commands, one.path);
    const std::vector<std::string> options = option_names(one);
    words.insert(words.end(), options.begin(), options.end());
    text += fmt::format("      '{}') words='{}' ;;\n", one.path, fmt::join(words, " "));
  }
  text +=
      "    esac\n"
      "  fi\n"
      "  if [[ -n $words ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "    [[ ${#COMPREPLY[@]} -gt 0 ]] && return\n"
      "  fi\n"
      "  compopt -o filenames 2>/dev/null\n"
      "  COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "}\n"
      "complete -F _tritax tritax\n";
  return text;
}

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& changes) {
  for (const auto& [from, to] : changes) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }
  return text;
}

// Text for _arguments, in single quotes.
std::string zsh_quoted(const std::string& text) {
  return replaced(text,
                  {{"\\", "\\\\"}, {"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"\n", " "}});
}

std::string zsh_option(const DescribedOption& one,
                       const std::map<std::string, std::vector<std::string>>& values) {
  if (one.positional) return "'*:file:_files'";
  std::string text = fmt::format("'*{}[{}]", one.name, zsh_quoted(one.help));
  if (!one.form.empty()) {
    const auto known = values.find(one.name);
    const std::string action =
        known == values.end() ? "_files" : fmt::format("({})", fmt::join(known->second, " "));
    text += fmt::format(":{}:{}", zsh_quoted(one.form), action);
  }
  return text + '\'';
}

std::string zsh_text() {
  const std::vector<DescribedCommand> commands = described_commands();
  const auto values = known_values();
  std::string text =
      "#compdef tritax\n# zsh completion of tritax; written by 'tritax describe zsh'\n\n_tritax() {\n"
      "  local -a commands\n  commands=(\n";
  for (const std::string& name : below(commands, "")) {
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const DescribedCommand& one) { return one.path == name; });
    text += fmt::format("    '{}:{}'\n", name, zsh_quoted(found->help));
  }
  text +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe 'command' commands\n    return\n  fi\n"
      "  local path=$words[2]\n"
      "  case \"$words[2] $words[3]\" in\n";
  std::string cases;
  for (const DescribedCommand& one : commands) {
    if (one.path.find(' ') != std::string::npos)
      text += fmt::format("    '{}') path='{}' ;;\n", one.path, one.path);
    if (one.path.empty()) continue;
    std::vector<std::string> specs;
    const std::vector<std::string> words = below(commands, one.path);
    if (!words.empty()) specs.push_back(fmt::format("'2:command:({})'", fmt::join(words, " ")));
    for (const DescribedOption& option : one.options) {
      std::string spec = zsh_option(option, values);
      if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(std::move(spec));
    }
    cases += fmt::format("    '{}')\n      _arguments \\\n        {}\n      ;;\n", one.path,
                         fmt::join(specs, " \\\n        "));
  }
  return text + "  esac\n  case $path in\n" + cases + "  esac\n}\n\n_tritax \"$@\"\n";
}

std::string roff(const std::string& text) {
  std::string escaped = replaced(text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
  if (!escaped.empty() && (escaped.front() == '.' || escaped.front() == '\'')) escaped = "\\&" + escaped;
  return escaped;
}

std::string man_command(const DescribedCommand& command) {
  std::string text;
  if (!command.path.empty())
    text += fmt::format(".SS \"tritax {}\"\n{}\n", roff(command.path), roff(command.help));
  for (const DescribedOption& one : command.options) {
    text += fmt::format(".TP\n.B {}{}", roff(one.name), one.others.empty() ? "" : ", " + roff(one.others));
    if (!one.form.empty() && !one.positional) text += fmt::format(" \\fI{}\\fR", roff(one.form));
    text += fmt::format("\n{}\n", roff(replaced(one.help, {{"\n", " "}})));
  }
  if (!command.footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.footer));
  return text;
}

std::string man_text() {
  const std::vector<DescribedCommand> commands = described_commands();
  std::string text = fmt::format(
      ".TH TRITAX 1 \"\" \"tritax {0}\" \"User Commands\"\n.SH NAME\ntritax \\- simulator of multi-GPU "
      "kernels that "
      "overlap computing with communication\n.SH SYNOPSIS\n.B tritax\n.I COMMAND\n[\\fIOPTION\\fR]...\n.SH "
      "DESCRIPTION\n{1}\n",
      version(), roff(commands.front().help));
  text += man_command({"", "", "", commands.front().options});
  text += ".SH COMMANDS\n";
  for (std::size_t i = 1; i < commands.size(); ++i) text += man_command(commands[i]);
  text += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(commands.front().footer));
  return text;
}

std::string fields_text() {
  nlohmann::ordered_json records = nlohmann::ordered_json::array();
  for (const ResultTable& table : result_tables()) records.push_back(json_of(table));
  return nlohmann::ordered_json{{"schema", "tritax.fields/1"}, {"records", std::move(records)}}.dump(2) +
         '\n';
}

}  // namespace

Run add_describe(CLI::App& program, const Workload& /*workload*/) {
  auto form = std::make_shared<std::string>();
  CLI::App& command =
      *program.add_subcommand("describe", "Write the shell completion or the man page of this program");
  command.add_option("form", *form, "bash, zsh or man; fields: the fields of all results, as JSON")
      ->type_name("FORM");
  command.footer(
      "An installed program includes the first three (docs/install.md). Fields: docs/result-fields.md.\n\n"
      "Example:\n"
      "  source <(tritax describe bash)\n");
  return [form] {
    using Write = std::string (*)();
    constexpr std::array<std::string_view, 4> kForms{"bash", "zsh", "man", "fields"};
    constexpr std::array<Write, 4> kWriters{bash_text, zsh_text, man_text, fields_text};
    if (form->empty()) throw UserError("FORM: missing; give bash, zsh, man or fields");
    write_standard_output(kWriters[parse_name(*form, "FORM", kForms)]());
    return 0;
  };
}

}  // namespace tritax::cli
