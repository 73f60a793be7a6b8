// The program as a table of commands, for who runs it and for who describes it (describe.cpp).
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cli/commands.hpp"

namespace tritax::cli {

struct Program {
  std::unique_ptr<CLI::App> app;
  std::vector<std::pair<const CLI::App*, Run>> commands;  // in the order in which help lists them

  Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();
};

// Declares one command; see commands.hpp.
using AddCommand = Run (*)(CLI::App&, const Workload&);

// The commands of this program in the order in which help lists them, and those that stand below `report` as
// well. A program of fewer commands has a table of its own in place of all_commands.cpp (wasm/commands.cpp).
std::span<const AddCommand> all_commands();
std::span<const AddCommand> reported_commands();

// With the options of that workload.
Program program_of(const Workload& workload);

// The command that describes all commands.
Run add_describe(CLI::App& program, const Workload& workload);

}  // namespace tritax::cli
