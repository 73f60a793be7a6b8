#include "cli/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/version.hpp"

namespace tritax::cli {

Program::Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Program program_of(const Workload& workload) {
  Program program;
  program.app = std::make_unique<CLI::App>(
      "Predicts how kernels run on the GPUs of a node, alone or overlapped with communication:\n"
      "which pattern, tile and CU split to build, and what kernel launches, bulk-synchronous\n"
      "waiting and lost locality cost.",
      "tritax");
  program.app->footer(
      "Example:\n"
      "  tritax advise -M 8192 -N 4608 -K 36864 --dtype fp16 --machine mi300x-8\n\n"
      "'tritax COMMAND --help' explains a command. Exit codes: 0 done, 2 user error, 130 interrupted.");
  program.app->set_version_flag("--version", fmt::format("tritax {}", version()));
  program.app->get_formatter()->column_width(32);
  program.app->require_subcommand(1);
  for (const AddCommand add : all_commands()) {
    Run command = add(*program.app, workload);
    program.commands.emplace_back(program.app->get_subcommands({}).back(), std::move(command));
  }
  return program;
}

}  // namespace tritax::cli
