// What the commands that measure take.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "backend_hip/options.hpp"

namespace tritax::gpu {
namespace {

struct LibraryCommand {
  CLI::App app;
  MeasureOptions options;
  RunOptions run;

  LibraryCommand() { add_library_options(app, options, run); }
  void parse(const std::string& more) { app.parse("spmv.toml --output library.csv " + more); }
};

TEST(LibraryOptions, AreThoseThatACallOfALibraryHas) {
  LibraryCommand command;
  command.parse("--id spmv/block --machine h200-4 --commit abc --repeat 7 --warmup 2 --seed 5 --flush 1e6");
  EXPECT_EQ(command.options.output, "library.csv");
  EXPECT_EQ(command.options.commit, "abc");
  EXPECT_EQ(command.options.selection.machine, "h200-4");
  EXPECT_EQ(command.run.repeats, 7);
  EXPECT_EQ(command.run.warmup, 2);
  EXPECT_EQ(command.run.executor.flush_bytes, 1e6);
}

TEST(LibraryOptions, RefuseWhatOnlySchedulesHave) {
  for (const char* option :
       {"--ops ops.csv", "--timeline folder", "--pace 100", "--spin-limit 3", "--gpus 2"}) {
    LibraryCommand command;
    EXPECT_THROW(command.parse(option), CLI::ParseError) << option;
  }
}

}  // namespace
}  // namespace tritax::gpu
