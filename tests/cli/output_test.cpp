#include "cli/output.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax::cli {
namespace {

using test::read_file;
using test::ScratchDirectory;

TEST(OutputFile, AppearsWholeWhenItIsCommitted) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("result.json");
  {
    OutputFile file(path, "--json");
    EXPECT_FALSE(std::filesystem::exists(path));
    file.commit("{}\n");
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  publish_outputs();
  EXPECT_EQ(read_file(path), "{}\n");
  EXPECT_EQ(scratch.file_count(), 1U);
}

TEST(OutputFile, LeavesNothingBehindWhenItIsNotCommitted) {
  const ScratchDirectory scratch;
  { const OutputFile file(scratch.path("result.json"), "--json"); }
  EXPECT_EQ(scratch.file_count(), 0U);
}

TEST(OutputFile, KeepsTheOldContentWhenItIsNotCommitted) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("result.json", "old");
  { const OutputFile file(path, "--json"); }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(scratch.file_count(), 1U);
}

TEST(OutputFile, ReplacesTheTargetOfASymbolicLinkNotTheLink) {
  const ScratchDirectory scratch;
  const std::string target = scratch.write("target.json", "old");
  std::filesystem::create_symlink(target, scratch.path("link.json"));
  OutputFile(scratch.path("link.json"), "--json").commit("new");
  publish_outputs();
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link.json")));
  EXPECT_EQ(read_file(target), "new");
}

TEST(OutputFile, FollowsALinkToAFileThatIsNotThereYet) {
  const ScratchDirectory scratch;
  std::filesystem::create_symlink("target.json", scratch.path("link.json"));
  OutputFile(scratch.path("link.json"), "--json").commit("new");
  publish_outputs();
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link.json")));
  EXPECT_EQ(read_file(scratch.path("target.json")), "new");
}

TEST(OutputFile, RefusesLinksThatLeadToEachOther) {
  const ScratchDirectory scratch;
  std::filesystem::create_symlink("b.json", scratch.path("a.json"));
  std::filesystem::create_symlink("a.json", scratch.path("b.json"));
  EXPECT_THROW(OutputFile(scratch.path("a.json"), "--json"), UserError);
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("a.json")));
}

// All runs in containers have the number 1, and one that was killed leaves its file.
TEST(OutputFile, TakesAnotherNameWhereAFileOfAKilledRunIsLeft) {
  const ScratchDirectory scratch;
  const std::string left = scratch.write(fmt::format("a.json.{}.tmp", getpid()), "of another run");
  OutputFile(scratch.path("a.json"), "--json").commit("new");
  publish_outputs();
  EXPECT_EQ(read_file(scratch.path("a.json")), "new");
  EXPECT_EQ(read_file(left), "of another run");
  EXPECT_EQ(scratch.file_count(), 2U);
}

TEST(OutputFile, IsDiscardedWithTheOthersOfItsCommand) {
  const ScratchDirectory scratch;
  const std::string old = scratch.write("a.csv", "old");
  OutputFile(old, "--csv").commit("new");
  OutputFile(scratch.path("b.json"), "--json").commit("new");
  discard_outputs();
  publish_outputs();
  EXPECT_EQ(read_file(old), "old");
  EXPECT_EQ(scratch.file_count(), 1U);
}

TEST(OutputFile, DoesNotReplaceWhatWasReadMeanwhile) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("machine.txt", "name");
  OutputFile output(file, "--json");
  tritax::read_file(file, "a machine file", 100);
  output.commit("new");
  EXPECT_THROW(publish_outputs(), UserError);
  discard_outputs();
  EXPECT_EQ(read_file(file), "name");
}

TEST(OutputFile, WritesDevicesInPlace) {
  OutputFile("/dev/null", "--json").commit("{}\n");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(OutputFile, ReportsAFullDisk) {
  OutputFile file("/dev/full", "--csv");
  EXPECT_THROW(file.commit("text"), UserError);
}

TEST(OutputFile, RefusesDirectoriesMissingFoldersAndInputFiles) {
  const ScratchDirectory scratch;
  EXPECT_THROW(OutputFile(scratch.path(""), "--json"), UserError);
  EXPECT_THROW(OutputFile(scratch.path("missing/result.json"), "--json"), UserError);
  EXPECT_THROW(OutputFile(scratch.write("scenario.toml", "x = 1"), "--json"), UserError);
  EXPECT_THROW(OutputFile("", "--json"), UserError);
}

TEST(OutputFile, IsNotOneThatAnotherOutputHasHoweverItIsSpelt) {
  const ScratchDirectory scratch;
  {
    const OutputFile first(scratch.path("a.csv"), "--json");
    EXPECT_THROW(OutputFile(scratch.path("./a.csv"), "--csv"), UserError);
  }
  scratch.write("a.csv", "old");
  std::filesystem::create_symlink(scratch.path("a.csv"), scratch.path("link.csv"));
  {
    const OutputFile first(scratch.path("a.csv"), "--json");
    EXPECT_THROW(OutputFile(scratch.path("link.csv"), "--csv"), UserError);
  }
  OutputFile(scratch.path("a.csv"), "--csv").commit("x");  // free again
  publish_outputs();
  EXPECT_EQ(read_file(scratch.path("a.csv")), "x");
}

TEST(OutputFile, DoesNotReplaceAnInputButForMachineFiles) {
  const ScratchDirectory scratch;
  const std::string csv = scratch.write("m.csv", "rows");
  const std::string machine = scratch.write("m.toml", "name");
  remember_inputs({"validate", scratch.path("./m.csv"), machine});
  EXPECT_THROW(OutputFile(csv, "--csv"), UserError);
  OutputFile(machine, "--output", OutputKind::machine_file).commit("new");
  publish_outputs();
  remember_inputs({});
  EXPECT_EQ(read_file(csv), "rows");
  EXPECT_EQ(read_file(machine), "new");
}

TEST(Outputs, ACsvFileStaysAsItWasWhenRowsAreMissing) {
  const ScratchDirectory scratch;
  const Table table{{{"id", "id"}}, {}};
  for (const bool complete : {false, true}) {
    OutputOptions options;
    options.csv = scratch.write("t.csv", "old");
    Outputs(options).csv(table, complete);
    publish_outputs();
    EXPECT_EQ(read_file(*options.csv), complete ? "id\n" : "old");
  }
  EXPECT_EQ(scratch.file_count(), 1U);
}

TEST(Outputs, StandardOutputIsForOneFormOnly) {
  OutputOptions options;
  options.json = "-";
  EXPECT_THROW(Outputs(options, "--output"), UserError);
  options.json.reset();
  EXPECT_FALSE(Outputs(options, "--output").for_people());
}

TEST(Outputs, JsonAndCsvCannotBothHaveStandardOutput) {
  OutputOptions options;
  options.json = "-";
  options.csv = "-";
  EXPECT_THROW(Outputs{options}, UserError);
  options.csv = "table.csv";
  options.json = "table.csv";
  EXPECT_THROW(Outputs{options}, UserError);
}

}  // namespace
}  // namespace tritax::cli
