// tritax patterns: lists the overlap patterns, or the knobs of one pattern.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"
#include "model/machine/machine.hpp"
#include "model/workloads/registry.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct PatternsArguments {
  OutputOptions output;
  Asked asked;       // machine of `show`
  std::string name;  // pattern of `show`; "": list all
};

// Knobs that the pattern uses, as indices in the workload's table.
std::vector<std::size_t> used_knobs(const Workload& workload, const Pattern& pattern) {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < workload.knobs.size(); ++i) {
    if (!workload.knobs[i].of_every_run && pattern.uses(workload.knobs[i].name)) used.push_back(i);
  }
  return used;
}

std::vector<std::string> used_names(const Workload& workload, const Pattern& pattern) {
  std::vector<std::string> names;
  for (const std::size_t knob : used_knobs(workload, pattern)) names.emplace_back(workload.knobs[knob].name);
  return names;
}

void list_patterns(const Workload& workload, Outputs& outputs) {
  Table table{{{"name", "name"}, {"summary", "summary"}, {"knobs", "knobs"}}, {}};
  ordered_json list = ordered_json::array();
  for (const Pattern& pattern : workload.patterns) {
    const std::vector<std::string> knobs = used_names(workload, pattern);
    table.add(
        {std::string(pattern.name), std::string(pattern.summary), fmt::format("{}", fmt::join(knobs, " "))});
    list.push_back({{"name", pattern.name}, {"summary", pattern.summary}, {"knobs", knobs}});
  }
  ordered_json others = ordered_json::array();
  std::string lines;
  for (const Workload* one : workloads()) {
    others.push_back({{"name", one->name}, {"title", one->title}, {"summary", one->summary}});
    if (!one->former_name.empty()) others.back()["former_name"] = one->former_name;
    if (one != &workload) lines += fmt::format("  --workload {}: {}\n", one->name, one->summary);
  }
  outputs.print(fmt::format("{}: {}\n\n", styled(workload.name, Style::bold), workload.summary));
  outputs.print(table);
  if (!lines.empty()) outputs.print(fmt::format("\nPatterns of other workloads:\n{}", lines));
  outputs.csv(with_record(table, {}));
  outputs.json({{"schema", "tritax.patterns/1"},
                {"version", version()},
                {"patterns", list},
                {"workload", workload.name},
                {"workloads", std::move(others)}});
}

// Default knobs on that machine, or without one on every shipped machine.
std::vector<Values> machine_defaults(const Workload& workload, const Machine* machine) {
  std::vector<Values> defaults;
  if (workload.default_knobs == nullptr) return defaults;
  if (machine != nullptr) return {workload.default_knobs(problem_of(workload), *machine)};
  for (const std::string& name : shipped_machines()) {
    defaults.push_back(workload.default_knobs(problem_of(workload), find_machine(name)));
  }
  return defaults;
}

// The first part of the help; the rest explains single values or gives an example.
std::string meaning_of(const Spec& knob) {
  const std::size_t end =
      std::min({knob.help.find(';'), knob.help.find(", for example"), knob.help.find(" (default: ")});
  return std::string(knob.help.substr(0, end));
}

// The help text behind "default:", for a value that only means that none was given.
std::string text_without_value(const Spec& knob) {
  constexpr std::string_view kWords = " (default: ";
  const std::size_t at = knob.help.find(kWords);
  if (at == std::string_view::npos) return "not given";
  const std::size_t begin = at + kWords.size();
  return std::string(knob.help.substr(begin, knob.help.rfind(')') - begin));
}

// Whether the usual value is a stand-in that a user may not give.
bool stands_for_something(const Spec& knob) {
  return knob.kind != ValueKind::name && knob.kind != ValueKind::boolean &&
         (knob.usual[0] < knob.low || knob.usual[0] > knob.high);
}

// The default for people: for one machine, or "by machine" where machines differ.
std::string default_of(const Workload& workload, const Pattern& pattern, std::size_t knob,
                       const std::vector<Values>& on_machines, const Machine* machine) {
  const Spec& spec = workload.knobs[knob];
  if (stands_for_something(spec)) {
    const auto on = [&](const Machine& one) {
      return workload.left_out == nullptr ? std::string() : workload.left_out(pattern, spec, one);
    };
    if (machine != nullptr && !on(*machine).empty()) return on(*machine);
    const bool by_machine = machine == nullptr && !on(find_machine(shipped_machines().front())).empty();
    return by_machine ? "by machine" : text_without_value(spec);
  }
  const std::string usual = text_of(Values(workload.knobs), knob);
  if (machine != nullptr) return on_machines.empty() ? usual : text_of(on_machines.front(), knob);
  const bool by_machine = std::any_of(on_machines.begin(), on_machines.end(), [&](const Values& defaults) {
    return text_of(defaults, knob) != usual;
  });
  return by_machine ? "by machine" : usual;
}

// Null where machines differ; a text for a stand-in or a value that differs on the machine.
ordered_json default_json(const std::string& shown, const Values& usual, std::size_t knob) {
  if (shown == "by machine") return ordered_json();
  return shown == text_of(usual, knob) ? json_of(usual, knob) : ordered_json(shown);
}

void show_pattern(const Workload& workload, const std::string& name, const Machine* machine,
                  Outputs& outputs) {
  const Pattern& pattern = find_pattern(workload, name, "patterns show");
  const std::vector<Values> on_machines = machine_defaults(workload, machine);
  Table table{{{"knob", "knob"}, {"option", "option"}, {"default", "default"}, {"meaning", "meaning"}}, {}};
  ordered_json knobs = ordered_json::array();
  for (const std::size_t i : used_knobs(workload, pattern)) {
    const Spec& knob = workload.knobs[i];
    const std::string usual = default_of(workload, pattern, i, on_machines, machine);
    const std::string option = knob.option_name() + value_form(knob);
    table.add({std::string(knob.name), option, usual, meaning_of(knob)});
    knobs.push_back({{"knob", knob.name},
                     {"option", option},
                     {"default", default_json(usual, Values(workload.knobs), i)},
                     {"meaning", meaning_of(knob)}});
  }
  outputs.print(fmt::format("{}: {}\n", styled(pattern.name, Style::bold), pattern.summary));
  outputs.print(machine == nullptr ? "Defaults. --machine NAME shows values that are 'by machine'.\n\n"
                                   : fmt::format("Defaults on {}.\n\n", machine->title()));
  if (table.rows.empty()) {
    outputs.print(pattern.vendor ? "It has no knobs: the vendor's libraries decide.\n"
                                 : "It has no knobs.\n");
  } else {
    outputs.print(table);
  }
  outputs.csv(with_record(table, {}));
  outputs.json({{"schema", "tritax.pattern/1"},
                {"version", version()},
                {"name", pattern.name},
                {"summary", pattern.summary},
                {"knobs", knobs},
                {"workload", workload.name}});
}

}  // namespace

Run add_patterns(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<PatternsArguments>();
  CLI::App& command = *program.add_subcommand("patterns", "List the overlap patterns, or explain one");
  add_workload_option(command, workload);
  add_output_options(command, options->output);
  command.require_subcommand(0, 1);
  CLI::App& show = *command.add_subcommand("show", "The knobs of a pattern, with defaults and meaning");
  show.add_option("NAME", options->name, "A pattern")->required();
  add_machine_options(show, options->asked, false);
  show.fallthrough();
  const std::string examples =
      "Examples:\n"
      "  tritax patterns\n"
      "  tritax patterns --workload all-gather\n"
      "  tritax patterns show producer-consumer --machine mi300x-8\n"
      "  tritax patterns --json -\n";
  command.footer(examples);
  show.footer(examples);
  return [options, &workload] {
    Outputs outputs(options->output);
    if (options->name.empty()) {
      list_patterns(workload, outputs);
    } else {
      std::optional<Machine> machine;
      if (!options->asked.machine.empty())
        machine = find_machine_option(options->asked.machine, options->asked.changes);
      show_pattern(workload, options->name, machine ? &*machine : nullptr, outputs);
    }
    return 0;
  };
}

}  // namespace tritax::cli
