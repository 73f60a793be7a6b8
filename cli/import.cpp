// tritax import: converts files of other tools: a trace of a run to scenarios, a topology to a machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/axes.hpp"
#include "cli/commands.hpp"
#include "cli/machine_json.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/imports/topology.hpp"
#include "model/imports/traced_problems.hpp"
#include "model/machine/write_machine.hpp"

namespace tritax::cli {

namespace {

using ImportJson = nlohmann::ordered_json;

struct ImportArguments {
  std::string file;
  std::string output;
  std::string machine;
  std::optional<std::int64_t> gpus;
  std::string name;
  std::string link;
  Asked asked;
  OutputOptions tables;
};

// The output: a file, or standard output; opened before the work starts.
class Imported {
 public:
  Imported(const ImportArguments& options, OutputKind kind)
      : outputs_(options.tables, is_standard_output(options.output) ? "--output" : "") {
    if (!is_standard_output(options.output)) file_.emplace(options.output, "--output", kind);
  }

  Outputs& outputs() { return outputs_; }

  void write(const std::string& text) {
    if (file_) {
      file_->commit(text);
    } else {
      write_standard_output(text);
    }
  }

 private:
  Outputs outputs_;
  std::optional<OutputFile> file_;
};

int import_trace(const ImportArguments& options) {
  Imported imported(options, OutputKind::scenario_file);
  Outputs& outputs = imported.outputs();
  const Machine machine = find_machine(options.machine);
  const Trace trace = read_trace(options.file);
  const TracedProblems found =
      problems_of(trace, options.machine, static_cast<int>(options.gpus.value_or(0)));
  if (found.problems.empty()) {
    throw UserError(fmt::format("{}: it has no call that can be simulated: {}", trace.file,
                                found.left_out.empty() ? "none" : found.left_out.begin()->first));
  }
  imported.write(write_problems(found, fmt::format("Problems of {} ({}). Written by tritax {}; format: "
                                                   "docs/scenarios.md.",
                                                   trace.file, trace.form, version())));
  Table table{{{"id", "id"}, {"size", "size"}, {"gpus", "GPUs"}, {"count", "count"}, {"first", "first"}}, {}};
  ImportJson problems = ImportJson::array();
  for (const TracedProblem& one : found.problems) {
    const Problem& problem = one.scenario.problem;
    table.add({one.scenario.id, problem.workload->size_text(problem), std::int64_t{problem.gpus()}, one.count,
               one.first});
    problems.push_back({{"id", one.scenario.id},
                        {"workload", json_of(problem)},
                        {"count", one.count},
                        {"first", one.first}});
  }
  outputs.print(fmt::format("{}, {}\n\n", trace.file, trace.form));
  outputs.print(table);
  ImportJson left_out = ImportJson::array();
  for (const auto& [what, count] : found.left_out) {
    left_out.push_back({{"what", what}, {"count", count}});
    outputs.print(fmt::format("{}skipped: {} x {}\n", left_out.size() == 1 ? "\n" : "", count, what));
  }
  Record record;
  record.machine = &machine;
  outputs.csv(with_record(table, record));
  outputs.json({{"schema", "tritax.import-trace/1"},
                {"version", version()},
                {"file", trace.file},
                {"form", trace.form},
                {"machine", options.machine},
                {"problems", std::move(problems)},
                {"left_out", std::move(left_out)}});
  return 0;
}

int import_topology(const ImportArguments& options) {
  if (find_control(options.name) != std::string::npos)
    throw UserError("--name: leave control characters out");
  Imported imported(options, OutputKind::machine_file);
  Outputs& outputs = imported.outputs();
  const Machine base = find_machine(options.machine);
  const TopologyFile topology = read_topology_file(options.file, options.link);
  const std::string name =
      options.name.empty() ? std::filesystem::path(options.file).stem().string() : options.name;
  const Machine machine = machine_of(topology, base, name, options.asked.changes);
  imported.write(write_machine(machine, fmt::format("{}. Written by tritax {}; format: docs/machines.md.",
                                                    machine.description, version())));
  Table table{{{"parameter", "parameter"}, {"value", "value"}, {"unit", "unit"}, {"source", "source"}}, {}};
  ImportJson parameters = ImportJson::array();
  for (const Parameter& one : machine.parameters) {
    const auto same = std::find_if(base.parameters.begin(), base.parameters.end(), [&](const Parameter& old) {
      return old.key == one.key && old.source == one.source;
    });
    if (same != base.parameters.end()) continue;
    table.add({one.key, fmt::format("{}", one.value), one.unit, one.source});
    parameters.push_back(
        {{"key", one.key}, {"value", one.value}, {"unit", one.unit}, {"source", one.source}});
  }
  outputs.print(fmt::format("{}, {}: {} x {} GPUs, {}; all else as {}\n\n", topology.file, topology.form,
                            machine.nodes, machine.gpus_per_node,
                            topology.kind == LinkKind::mesh ? "a mesh" : "a switch", base.title()));
  outputs.print(table);
  Record record;
  record.machine = &machine;
  outputs.csv(with_record(table, record));
  outputs.json({{"schema", "tritax.import-topology/1"},
                {"version", version()},
                {"file", topology.file},
                {"form", topology.form},
                {"machine", machine.name},
                {"base", base.title()},
                {"nodes", machine.nodes},
                {"gpus_per_node", machine.gpus_per_node},
                {"links", topology.kind == LinkKind::mesh ? "mesh" : "switch"},
                {"parameters", std::move(parameters)}});
  return 0;
}

void add_import_options(CLI::App& command, ImportArguments& options, const std::string& form,
                        const std::string& machine) {
  command.add_option("-o,--output", options.output, "File to write; '-': standard output")
      ->type_name(form)
      ->group(kOutputGroup)
      ->required();
  command.add_option("--machine", options.machine, machine)->type_name("NAME|FILE")->required();
  add_output_options(command, options.tables);
}

}  // namespace

Run add_import(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<ImportArguments>();
  CLI::App& command = *program.add_subcommand(
      "import", "Convert PyTorch traces into scenarios, and topology files into machines");
  command.require_subcommand(1);
  CLI::App& trace = *command.add_subcommand("trace",
                                            "Convert the products and collectives of a trace into a scenario "
                                            "file");
  trace
      .add_option("FILE", options->file, "JSON of torch.profiler, ExecutionTraceObserver or chakra_jsonizer")
      ->required();
  add_import_options(trace, *options, "FILE.toml", "Machine that the scenarios name");
  add_integer(trace, "--gpus", options->gpus, "GPUs per collective, where the trace does not say", 2,
              std::int64_t{kMostNodes} * kMostGpusPerNode);
  CLI::App& topology = *command.add_subcommand(
      "topology", "Convert the nodes, GPUs and links of a topology into a machine file");
  topology
      .add_option("FILE", options->file, "ASTRA-sim network file or InfraGraph infrastructure (YAML or JSON)")
      ->required();
  add_import_options(topology, *options, "FILE.toml",
                     "Machine that gives every parameter that the topology does not");
  topology.add_option("--name", options->name, "Name of the machine (default: the file's name)");
  topology
      .add_option("--link", options->link,
                  "InfraGraph: the link that joins the GPUs of a node, if several could")
      ->type_name("NAME");
  add_change_options(topology, options->asked, false);
  const std::string examples =
      "docs/import.md says what is read and how it is converted.\n\n"
      "Examples:\n"
      "  tritax import trace rank0.json --machine h200-8 -o run.toml && tritax advise run.toml\n"
      "  tritax import topology network.yml --machine h200-8 -o hgx.toml\n"
      "  tritax import topology cluster.yaml --machine h200-8 --link nvlink -o cluster.toml\n";
  command.footer(examples);
  trace.footer(examples);
  topology.footer(examples);
  return [options, &trace] { return trace.parsed() ? import_trace(*options) : import_topology(*options); };
}

}  // namespace tritax::cli
