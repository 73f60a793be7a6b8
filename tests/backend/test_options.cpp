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
       {"--ops ops.csv", "--timeline folder", "--pace 100", "--spin-limit 3", "--gpus 2", "--checks 3"}) {
    LibraryCommand command;
    EXPECT_THROW(command.parse(option), CLI::ParseError) << option;
  }
}

TEST(MeasureOptions, SayHowManyRunsAreChecked) {
  CLI::App app;
  MeasureOptions options;
  RunOptions run;
  add_measure_options(app, options, run);
  app.parse("llm.toml --output measured.csv --checks 7");
  EXPECT_EQ(run.checks, 7);
  EXPECT_THROW(app.parse("llm.toml --output measured.csv --checks 0"), CLI::ValidationError);
}

// As of a schedule or of a GEMM, and of microbenchmarks, which have nothing to compare with.
struct RunCommand {
  CLI::App app;
  RunOptions run;

  explicit RunCommand(bool may_check) {
    add_run_options(app, run);
    if (may_check) add_check_options(app, run);
  }
};

TEST(CheckOptions, CountRunsOnlyWhereTheyAreChecked) {
  RunCommand checked(true);
  checked.app.parse("--check --checks 5 --repeat 2");
  EXPECT_TRUE(checked.run.check);
  EXPECT_EQ(checked.run.checks, 5);

  RunCommand unchecked(true);
  try {
    unchecked.app.parse("--checks 5");
    ADD_FAILURE() << "accepted";
  } catch (const CLI::RequiresError& error) {
    EXPECT_NE(std::string(error.what()).find("--checks requires --check"), std::string::npos) << error.what();
  }

  RunCommand shared(true);
  EXPECT_THROW(shared.app.parse("--share-gpus"), CLI::RequiresError);  // only results count on shared GPUs
  shared.app.parse("--check --share-gpus");
  EXPECT_TRUE(shared.run.executor.share_gpus);

  RunCommand without(false);
  EXPECT_THROW(without.app.parse("--checks 5"), CLI::ParseError);
}

}  // namespace
}  // namespace tritax::gpu
