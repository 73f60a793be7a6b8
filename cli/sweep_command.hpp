// Common parts of commands that run sweeps: options, and the final report.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "sim/study/sweep/run_sweep.hpp"

namespace CLI {
class App;
}

namespace tritax::cli {

struct SweepArguments {
  std::string file;
  std::string database;    // "": the name of the file, in the current folder
  std::string shard_text;  // "3/16"
  std::size_t shard = 0;   // from 0
  std::size_t shards = 1;
  std::optional<int> threads;
  bool retry = false;
  bool dry_run = false;

  int cores() const;  // cores that the command uses
};

// FILE, --output, --shard, --threads, --retry.
void add_sweep_options(CLI::App& command, SweepArguments& arguments);

// Reads the shard and names the database. Throws UserError.
void complete_sweep_arguments(SweepArguments& arguments);

SweepRunOptions sweep_options(const SweepArguments& arguments, const SweepPlan& plan);

// "3.2 s", "12 min", "5.1 h".
std::string duration_text(double seconds);

// Reports the answers, their rate, and the next steps; refused points go to standard error.
void report_sweep(const SweepArguments& arguments, const SweepPlan& plan, const SweepTally& tally,
                  double seconds);

}  // namespace tritax::cli
