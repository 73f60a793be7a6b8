// What the commands that run sweeps share: their options, and what they say at the end.
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
  std::string database;    // "": that of the file's name, in the current folder
  std::string shard_text;  // "3/16"
  std::size_t shard = 0;   // from 0
  std::size_t shards = 1;
  std::optional<int> threads;
  bool retry = false;
  bool dry_run = false;

  int cores() const;  // that it uses
};

// FILE, --output, --shard, --threads, --retry.
void add_sweep_options(CLI::App& command, SweepArguments& arguments);

// Reads the shard and names the database. Throws UserError.
void complete_sweep_arguments(SweepArguments& arguments);

SweepRunOptions sweep_options(const SweepArguments& arguments, const SweepPlan& plan);

// "3.2 s", "12 min", "5.1 h".
std::string duration_text(double seconds);

// What was answered, how fast, and what to do with it; on standard error what was refused.
void report_sweep(const SweepArguments& arguments, const SweepPlan& plan, const SweepTally& tally,
                  double seconds);

}  // namespace tritax::cli
