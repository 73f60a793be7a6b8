// The program as a table of commands, for main.cpp, which runs it, and describe.cpp, which describes it.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cli/commands.hpp"

namespace tritax::cli {

struct Program {
  std::unique_ptr<CLI::App> app;
  std::vector<std::pair<const CLI::App*, Run>> commands;  // in the order of the help

  Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();
};

// Declares one command; see commands.hpp.
using AddCommand = Run (*)(CLI::App&, const Workload&);

// The commands of this program in the order of the help, and the commands that also stand below `report`. A
// program with fewer commands has its own table in place of all_commands.cpp (wasm/commands.cpp).
std::span<const AddCommand> all_commands();
std::span<const AddCommand> reported_commands();

// The program with the options of that workload.
Program program_of(const Workload& workload);

// The command that describes all commands.
Run add_describe(CLI::App& program, const Workload& workload);

}  // namespace tritax::cli
