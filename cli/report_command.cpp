// tritax report: the answers of other commands as an HTML page for a design review.
#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "cli/program.hpp"
#include "model/core/error.hpp"

namespace tritax::cli {

// Adds each of these commands a second time, below `report`, with the options of a page (cli/page.hpp).
Run add_report(CLI::App& program, const Workload& workload) {
  CLI::App& report = *program.add_subcommand(
      "report", "Write a page for a design review: a command's answer in figures, with timeline and sources");
  report.require_subcommand(1);
  report.footer(
      "The page is one file and needs no network. The options are those of the command. docs/report.md\n"
      "describes the page.\n\n"
      "Examples:\n"
      "  tritax report advise -M 8192 -N 4608 -K 36864 --machine mi300x-8 -o report.html\n"
      "  tritax report simulate scenarios/16384-cubed.toml --id producer-consumer -o report.html\n"
      "  tritax report layer --model llama-3-70b --machine mi300x-8 -o layer.html --svg layer.svg\n"
      "  tritax report validate -o parity.html\n");
  std::vector<std::pair<const CLI::App*, Run>> commands;
  for (const AddCommand add : reported_commands()) {
    Run command = add(report, workload);
    commands.emplace_back(report.get_subcommands({}).back(), std::move(command));
  }
  return [commands] {
    for (const auto& [app, command] : commands) {
      if (app->parsed()) return command();
    }
    TRITAX_ASSERT(false, "the parser accepted a report of nothing");
  };
}

}  // namespace tritax::cli
