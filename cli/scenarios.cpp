// tritax scenarios: lists the shipped scenarios, or the scenarios of a file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/record.hpp"
#include "cli/report.hpp"
#include "cli/version.hpp"
#include "model/scenario/scenario.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

struct ScenariosArguments {
  OutputOptions output;
  std::vector<std::string> files;  // empty: all that are shipped
};

// A table of a file; its scenarios differ only in the pattern.
struct Listed {
  std::string file;
  std::string id;
  const Scenario* scenario = nullptr;
  std::vector<std::string> patterns;
};

// The id without the pattern at its end, where a table has several patterns.
std::string id_of(const Scenario& scenario, bool several) {
  const std::string ending = '/' + scenario.pattern;
  const bool has = several && scenario.id.ends_with(ending);
  return has ? scenario.id.substr(0, scenario.id.size() - ending.size()) : scenario.id;
}

std::vector<Listed> tables_of(const std::string& file, const std::vector<Scenario>& scenarios) {
  std::vector<Listed> tables;
  for (const Scenario& scenario : scenarios) {
    if (tables.empty() || tables.back().scenario->where != scenario.where) {
      tables.push_back({file, "", &scenario, {}});
    }
    if (!scenario.pattern.empty()) tables.back().patterns.push_back(scenario.pattern);
    tables.back().id = id_of(*tables.back().scenario, tables.back().patterns.size() > 1);
  }
  return tables;
}

int list_scenarios(const ScenariosArguments& options) {
  Outputs outputs(options.output);
  Table table{{{"file", "file"},
               {"id", "id"},
               {"workload", "workload"},
               {"size", "size"},
               {"gpus", "GPUs"},
               {"machine", "machine"},
               {"patterns", "patterns"}},
              {}};
  ordered_json list = ordered_json::array();
  for (const std::string& file : options.files.empty() ? shipped_scenarios() : options.files) {
    const std::vector<Scenario> scenarios = read_scenarios(file);
    for (const Listed& one : tables_of(file, scenarios)) {
      const Problem& problem = one.scenario->problem;
      const std::string patterns =
          one.patterns.empty() ? "advise chooses" : fmt::format("{}", fmt::join(one.patterns, " "));
      table.add({file, one.id, std::string(problem.workload->name), problem.workload->size_text(problem),
                 std::int64_t{problem.gpus()}, one.scenario->machine, patterns});
      list.push_back({{"file", file},
                      {"id", one.id},
                      {"title", one.scenario->title},
                      {"machine", one.scenario->machine},
                      {"workload", json_of(problem)},
                      {"patterns", one.patterns}});
    }
  }
  outputs.print(table);
  outputs.print("\n'tritax advise FILE --id ID' and 'tritax simulate FILE' take these names.\n");
  outputs.csv(with_record(table, {}));
  outputs.json({{"schema", "tritax.scenarios/1"}, {"version", version()}, {"scenarios", std::move(list)}});
  return 0;
}

}  // namespace

Run add_scenarios(CLI::App& program, const Workload& /*workload*/) {
  auto options = std::make_shared<ScenariosArguments>();
  CLI::App& command = *program.add_subcommand("scenarios", "List the shipped scenarios");
  add_output_options(command, options->output);
  command.require_subcommand(0, 1);
  CLI::App& list = *command.add_subcommand("list", "Id, size, machine and patterns of every scenario");
  list.add_option("FILE", options->files, "Scenario files, or names of shipped ones (default: all shipped)");
  list.fallthrough();
  const std::string examples =
      "Examples:\n"
      "  tritax scenarios list\n"
      "  tritax scenarios list llm my-scenarios.toml --json -\n"
      "  tritax advise llm --id llama-3-70b/qkv/prefill\n";
  command.footer(examples);
  list.footer(examples);
  return [options] { return list_scenarios(*options); };
}

}  // namespace tritax::cli
