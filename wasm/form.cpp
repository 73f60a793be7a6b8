#include "wasm/form.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "cli/version.hpp"
#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"
#include "model/select/selector.hpp"
#include "model/workloads/registry.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

std::string_view kind_name(ValueKind kind) {
  constexpr std::array<std::string_view, 5> kNames{"integer", "name", "boolean", "bytes", "file"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Null where the value only says that nobody gave one, and where it depends on the machine.
ordered_json usual_of(const Values& usual, std::size_t index) {
  const Spec& field = usual.specs()[index];
  const bool ranged = field.kind == ValueKind::integer || field.kind == ValueKind::bytes;
  const std::int64_t value = usual.at(usual.first_column(index));
  if (field.required || field.counts_gpus || field.kind == ValueKind::file) return nullptr;
  if (ranged && (value < field.low || value > field.high)) return nullptr;
  return text_of(usual, index);
}

// Of all shipped files; one that names a file of its own would need that file.
std::vector<Problem> shipped_problems() {
  std::vector<Problem> problems;
  for (const std::string& name : shipped_scenarios()) {
    for (const Scenario& scenario : read_scenarios(name)) problems.push_back(scenario.problem);
  }
  return problems;
}

ordered_json fields_json(const Workload& workload, const Problem* example) {
  ordered_json fields = ordered_json::array();
  const Values usual(workload.fields);
  for (std::size_t i = 0; i < workload.fields.size(); ++i) {
    const Spec& field = workload.fields[i];
    ordered_json one{{"option", field.option_name()},
                     {"help", field.help},
                     {"kind", kind_name(field.kind)},
                     {"required", field.required},
                     {"usual", usual_of(usual, i)},
                     {"example", nullptr},
                     {"low", field.low},
                     {"high", field.high},
                     {"names", ordered_json::array()}};
    const bool has_example = example != nullptr && example->values.given_at(usual.first_column(i));
    if (has_example && field.kind != ValueKind::file) one["example"] = text_of(example->values, i);
    for (const std::string_view name : field.names) one["names"].push_back(name);
    fields.push_back(std::move(one));
  }
  return fields;
}

ordered_json form_json() {
  const std::vector<Problem> problems = shipped_problems();
  ordered_json workloads_json = ordered_json::array();
  for (const Workload* workload : workloads()) {
    const Problem* example = nullptr;
    for (const Problem& problem : problems) {
      if (example == nullptr && problem.workload == workload) example = &problem;
    }
    workloads_json.push_back({{"name", workload->name},
                              {"title", workload->title},
                              {"summary", workload->summary},
                              {"fields", fields_json(*workload, example)}});
  }
  ordered_json machines = ordered_json::array();
  for (const std::string& name : shipped_machines()) {
    const Machine machine = find_machine(name);
    machines.push_back({{"name", name}, {"description", machine.description}, {"gpus", machine.gpu_count()}});
  }
  ordered_json how = ordered_json::array();
  for (const Selector& selector : selectors()) {
    how.push_back({{"name", selector.name}, {"summary", selector.summary}});
  }
  return {{"schema", "tritax.form/1"},
          {"version", version()},
          {"workloads", std::move(workloads_json)},
          {"machines", std::move(machines)},
          {"selectors", std::move(how)}};
}

}  // namespace

Run add_form(CLI::App& program, const Workload& /*workload*/) {
  program.add_subcommand("form", "What may be asked, as JSON");
  return [] {
    write_standard_output(form_json().dump() + '\n');
    return 0;
  };
}

}  // namespace tritax::cli
