// tritax patterns: lists the overlap patterns, or says which knobs one has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "model/patterns/pattern.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct PatternsArguments {
  OutputOptions output;
  std::string name;  // of `show`; "" lists all
};

struct KnobHelp {
  bool used = false;
  std::string knob;
  std::string option;
  std::string meaning;
};

std::vector<KnobHelp> knob_help(const Pattern& pattern) {
  // Values of the option and meaning, in the order of kKnobNames.
  static constexpr std::array<std::array<const char*, 2>, kKnobNames.size()> kWords{
      {{" MxNxK", "GEMM tile of a workgroup"},
       {"", "waves of a GEMM workgroup"},
       {"", "how a workgroup feeds its matrix cores: serial, overlapped"},
       {" MxN", "tile of a communication step"},
       {"", "workgroups of the compute role"},
       {"", "workgroups of the communication role"},
       {"", "row tiles of a group in the grid order"},
       {" on|off", "every die gets a contiguous range of tiles"},
       {"", "ranks 0, 1, … (fixed), own + 1, … (rotated), or so, each workgroup one later (staggered)"},
       {"", "how flags are set and polled"},
       {"", "kernels one by one (stream) or in one call (graph)"}}};
  std::vector<KnobHelp> help;
  for (std::size_t i = 0; i < kKnobNames.size(); ++i) {
    const auto& [name, use] = kKnobNames[i];
    help.push_back({pattern.uses.*use, std::string(name), knob_option(name) + kWords[i][0], kWords[i][1]});
  }
  return help;
}

std::vector<std::string> used_knobs(const Pattern& pattern) {
  std::vector<std::string> names;
  for (const KnobHelp& knob : knob_help(pattern)) {
    if (knob.used) {
      names.push_back(knob.knob);
    }
  }
  return names;
}

void list_patterns(Outputs& outputs) {
  Table table{{{"name", "name"}, {"summary", "summary"}, {"knobs", "knobs"}}, {}};
  ordered_json list = ordered_json::array();
  for (const Pattern& pattern : patterns()) {
    const std::vector<std::string> knobs = used_knobs(pattern);
    table.add(
        {std::string(pattern.name), std::string(pattern.summary), fmt::format("{}", fmt::join(knobs, " "))});
    list.push_back({{"name", pattern.name}, {"summary", pattern.summary}, {"knobs", knobs}});
  }
  outputs.print(table);
  outputs.csv(table);
  outputs.json({{"schema", "tritax.patterns/1"}, {"patterns", list}});
}

void show_pattern(const std::string& name, Outputs& outputs) {
  const Pattern& pattern = find_pattern(name, "patterns show");
  const ordered_json defaults = json_of(Knobs{});
  Table table{{{"knob", "knob"}, {"option", "option"}, {"default", "default"}, {"meaning", "meaning"}}, {}};
  ordered_json knobs = ordered_json::array();
  for (const KnobHelp& knob : knob_help(pattern)) {
    if (knob.used) {
      // Which tile and pipeline suit a GPU is a matter of its registers and LDS.
      const bool by_machine = knob.knob == "tile" || knob.knob == "pipeline";
      const ordered_json value = by_machine ? ordered_json() : defaults.at(knob.knob);
      const std::string text = by_machine          ? "by machine"
                               : value.is_string() ? value.get<std::string>()
                                                   : value.dump();
      table.add({knob.knob, knob.option, text, knob.meaning});
      knobs.push_back(
          {{"knob", knob.knob}, {"option", knob.option}, {"default", value}, {"meaning", knob.meaning}});
    }
  }
  outputs.print(fmt::format("{}: {}\n\n", styled(pattern.name, Style::bold), pattern.summary));
  if (table.rows.empty()) {
    outputs.print("It has no knobs: the vendor's libraries decide.\n");
  } else {
    outputs.print(table);
  }
  outputs.csv(table);
  outputs.json({{"schema", "tritax.pattern/1"},
                {"name", pattern.name},
                {"summary", pattern.summary},
                {"knobs", knobs}});
}

}  // namespace

Run add_patterns(CLI::App& program) {
  auto options = std::make_shared<PatternsArguments>();
  CLI::App& command = *program.add_subcommand("patterns", "List the overlap patterns, or explain one");
  add_output_options(command, options->output);
  command.require_subcommand(0, 1);
  CLI::App& show = *command.add_subcommand("show", "The knobs of a pattern, with defaults and meaning");
  show.add_option("NAME", options->name, "A pattern")->required();
  show.fallthrough();
  const std::string examples =
      "Examples:\n"
      "  tritax patterns\n"
      "  tritax patterns show producer-consumer\n"
      "  tritax patterns --json -\n";
  command.footer(examples);
  show.footer(examples);
  return [options] {
    Outputs outputs(options->output);
    if (options->name.empty()) {
      list_patterns(outputs);
    } else {
      show_pattern(options->name, outputs);
    }
    return 0;
  };
}

}  // namespace tritax::cli
