#include "cli/repeat_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/workloads/registry.hpp"

namespace tritax::cli {

namespace {

// " --tile 256x256x64", " --xcd-remap off", " --host-barriers"
std::string option_text(const Values& values, std::size_t index) {
  const Spec& spec = values.specs()[index];
  const std::int64_t value = values.at(values.first_column(index));
  if (spec.kind == ValueKind::boolean && spec.of_every_run) {
    return fmt::format(" {}{}", spec.option_name(), value != 0 ? "" : "=off");
  }
  if (spec.kind == ValueKind::boolean)
    return fmt::format(" {} {}", spec.option_name(), value != 0 ? "on" : "off");
  return fmt::format(" {} {}", spec.option_name(), text_of(values, index));
}

bool is_left_out(const Values& values, std::size_t index) {
  const Spec& spec = values.specs()[index];
  return !spec.required && values.at(values.first_column(index)) < spec.low &&
         spec.kind != ValueKind::boolean && spec.kind != ValueKind::name;
}

bool same(const Values& a, const Values& b, std::size_t spec) { return text_of(a, spec) == text_of(b, spec); }

}  // namespace

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./+=:@%,";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Scenario scenario_of_run(const Problem& problem, const Pattern& pattern, const Values& knobs,
                         const std::string& machine, const Machine& on) {
  Scenario scenario = scenario_of(problem);
  scenario.id = pattern.name;
  scenario.machine = machine;
  scenario.pattern = pattern.name;
  const Values usual = resolved_knobs(problem, on, {});
  for (std::size_t i = 0; i < knobs.specs().size(); ++i) {
    const Spec& knob = knobs.specs()[i];
    if (!knob.of_every_run && !pattern.uses(knob.name)) continue;
    if (same(knobs, usual, i) || is_left_out(knobs, i)) continue;
    for (std::size_t part = 0; part < knob.columns(); ++part) {
      const std::size_t column = knobs.first_column(i) + part;
      scenario.knobs.give_at(column, knobs.at(column));
    }
  }
  return scenario;
}

std::string command_of_run(const Scenario& scenario, const std::string& options) {
  const Problem& problem = scenario.problem;
  std::string text = "tritax simulate";
  if (problem.workload != workloads().front()) text += fmt::format(" --workload {}", problem.workload->name);
  text += fmt::format(" --pattern {}", scenario.pattern);
  const Values usual(problem.workload->fields);
  for (std::size_t i = 0; i < usual.specs().size(); ++i) {
    const Spec& field = usual.specs()[i];
    const bool said = field.required || field.counts_gpus || !same(problem.values, usual, i);
    if (said && !is_left_out(problem.values, i)) text += option_text(problem.values, i);
  }
  text += fmt::format(" --machine {}", shell_word(scenario.machine));
  for (std::size_t i = 0; i < scenario.knobs.specs().size(); ++i) {
    if (scenario.knobs.given_at(scenario.knobs.first_column(i))) text += option_text(scenario.knobs, i);
  }
  return text + options;
}

}  // namespace tritax::cli
