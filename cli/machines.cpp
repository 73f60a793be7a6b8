// tritax machines: lists the shipped machines, or every parameter of one machine with unit, origin and
// source.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/axes.hpp"
#include "cli/commands.hpp"
#include "cli/machine_json.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"
#include "model/machine/changes.hpp"
#include "model/machine/library_table.hpp"
#include "model/machine/machine.hpp"
#include "model/machine/write_machine.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct MachinesArguments {
  OutputOptions output;
  Asked asked;  // machine of `show` and its changes; "": list all
  bool toml = false;
};

std::string_view link_name(LinkKind kind) { return kLinkKindNames[static_cast<std::size_t>(kind)]; }

void list_machines(Outputs& outputs) {
  Table table{{{"name", "name"},
               {"gpus", "GPUs"},
               {"gpu", "GPU"},
               {"cus", "CUs"},
               {"xcds", "dies"},
               {"hbm_gb_per_s", "HBM", "GB/s", 0},
               {"links", "links"},
               {"link_gb_per_s", "link", "GB/s", 0},
               {"description", "description"}},
              {}};
  ordered_json machines = ordered_json::array();
  for (const std::string& name : shipped_machines()) {
    const Machine machine = find_machine(name);
    table.add({machine.name, std::int64_t{machine.gpu_count()}, machine.gpu.name,
               std::int64_t{machine.gpu.cu_count()}, std::int64_t{machine.gpu.xcds}, machine.gpu.hbm_gb_per_s,
               std::string(link_name(machine.fabric.kind)), machine.fabric.link_raw_gb_per_s,
               machine.description});
    machines.push_back({{"name", machine.name},
                        {"description", machine.description},
                        {"gpus", machine.gpu_count()},
                        {"nodes", machine.nodes},
                        {"gpu", machine.gpu.name},
                        {"arch", machine.gpu.arch},
                        {"cus", machine.gpu.cu_count()},
                        {"xcds", machine.gpu.xcds},
                        {"hbm_gb_per_s", machine.gpu.hbm_gb_per_s},
                        {"links", link_name(machine.fabric.kind)},
                        {"link_gb_per_s", machine.fabric.link_raw_gb_per_s}});
  }
  outputs.print(table);
  outputs.print(
      "\n'tritax machines show NAME' explains every parameter; your own TOML file works wherever a name "
      "does.\n");
  outputs.csv(with_record(table, {}));
  outputs.json({{"schema", "tritax.machines/1"}, {"version", version()}, {"machines", machines}});
}

// A complete machine file without a base; reading it gives the same machine.
void write_toml(const Machine& machine) {
  std::string head =
      fmt::format("{}. Written by tritax {}; format: docs/machines.md.", machine.file, version());
  for (const std::string& change : describe_changes(machine)) head += "\nchanged: " + change;
  Machine named = machine;
  if (!machine.changes.empty()) named.description += "; changed: " + machine.title();
  write_standard_output(write_machine(named, head));
}

// Calls visit(name, what its rows are, number of rows, remarks) for every table of measured library calls.
template <typename Visit>
void for_each_table(const Machine& machine, const Visit& visit) {
  for (const auto& table : machine.library_tables)
    visit(table->name(), "products", table->products().size(), table->remarks());
  for (const auto& table : machine.collective_tables)
    visit(table->name(), "collectives", table->size(), table->remarks());
  for (const auto& table : machine.attention_tables)
    visit(table->name(), "attention", table->size(), table->remarks());
}

// The measured library calls and their sources: the remarks of each table.
void print_tables(const Machine& machine, Outputs& outputs) {
  bool any = false;
  for_each_table(machine, [&](const std::string& name, std::string_view what, std::size_t rows,
                              const std::vector<std::string>& remarks) {
    any = true;
    outputs.print(
        fmt::format("\n{}: {} measured library calls, {}\n", styled(name, Style::bold), rows, what));
    for (const std::string& remark : remarks) outputs.print("  " + remark + "\n");
  });
  if (!any) outputs.print("\nno measured library calls: library times come from the model alone\n");
}

ordered_json tables_json(const Machine& machine) {
  ordered_json tables = ordered_json::array();
  for_each_table(machine, [&](const std::string& name, std::string_view what, std::size_t rows,
                              const std::vector<std::string>& remarks) {
    tables.push_back({{"name", name}, {"calls", what}, {"rows", rows}, {"remarks", remarks}});
  });
  return tables;
}

void show_machine(const Machine& machine, Outputs& outputs) {
  Table table{{{"key", "parameter"},
               {"value", "value"},
               {"unit", "unit"},
               {"how", "how"},
               {"source", "source, or reason for an assumption"}},
              {}};
  Table exact = table;
  for (const Parameter& parameter : machine.parameters) {
    const std::string how = provenance_name(parameter.how);
    table.add({parameter.key, fmt::format("{}", parameter.value), parameter.unit, how, parameter.source});
    exact.add({parameter.key, parameter.value, parameter.unit, how, parameter.source});
  }
  outputs.print(fmt::format("{}: {}\n{} x {} ({}), {} compute units on {} dies, {} links\n\n",
                            styled(machine.title(), Style::bold), machine.description, machine.gpu_count(),
                            machine.gpu.name, machine.gpu.arch, machine.gpu.cu_count(), machine.gpu.xcds,
                            link_name(machine.fabric.kind)));
  outputs.print(table);
  print_tables(machine, outputs);
  Record record;
  record.machine = &machine;
  outputs.csv(with_record(exact, record));
  ordered_json json = machine_json(machine);
  json["library_tables"] = tables_json(machine);
  add_record(json, record);
  outputs.json(json);
}

}  // namespace

Run add_machines(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<MachinesArguments>();
  CLI::App& command = *program.add_subcommand("machines", "List the shipped machines, or explain one");
  add_output_options(command, options->output);
  command.require_subcommand(0, 1);
  CLI::App& show =
      *command.add_subcommand("show", "Every parameter of a machine: value, unit, how obtained, source");
  show.add_option("NAME", options->asked.machine, "Shipped machine or machine file (TOML)")->required();
  add_change_options(show, options->asked, false);
  show.add_flag("--toml", options->toml, "Write the complete machine file to standard output");
  show.fallthrough();
  const std::string examples =
      "Examples:\n"
      "  tritax machines\n"
      "  tritax machines show mi300x-8\n"
      "  tritax machines show ./my-node.toml --json -\n"
      "  tritax machines show mi300x-8 --set fabric.link=32GB/s --toml > slow-links.toml\n";
  command.footer(examples);
  show.footer(examples);
  return [options] {
    Outputs outputs(options->output, options->toml ? "--toml" : "");
    if (options->asked.machine.empty()) {
      list_machines(outputs);
      return 0;
    }
    const Machine machine = changed(find_machine(options->asked.machine), options->asked.changes);
    if (options->toml) write_toml(machine);
    show_machine(machine, outputs);
    return 0;
  };
}

}  // namespace tritax::cli
