#include "cli/output.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "model/core/error.hpp"
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
  }
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
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link.json")));
  EXPECT_EQ(read_file(target), "new");
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
