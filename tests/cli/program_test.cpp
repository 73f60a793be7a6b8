// The program as a user meets it: exit codes, messages, and what is (not) left on disk.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using nlohmann::json;
using test::Outcome;
using test::read_file;
using test::run_tritax;
using test::ScratchDirectory;

const std::string kSmallProblem = "-M 1024 -N 1024 -K 256 --machine mi300x-8 --gpus 4 ";

// One line that starts with "tritax: ", says all of `words`, and nothing on standard output.
void expect_user_error(const Outcome& outcome, const std::vector<std::string>& words) {
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.rfind("tritax: ", 0), 0U) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  for (const std::string& word : words) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << "'" << word << "' is not in: " << outcome.err;
  }
}

class EveryCommand : public testing::TestWithParam<const char*> {};

TEST_P(EveryCommand, HelpShowsExamplesAndEndsWithZero) {
  const Outcome outcome = run_tritax(std::string(GetParam()) + " --help");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("Examples:\n  tritax " + std::string(GetParam())), std::string::npos);
  EXPECT_NE(outcome.out.find("--json"), std::string::npos);
  EXPECT_NE(outcome.out.find("--csv"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Commands, EveryCommand,
                         testing::Values("advise", "simulate", "explain", "trace", "check", "schedule",
                                         "patterns", "machines", "reproduce", "validate"));

TEST(Program, VersionAndHelpEndWithZero) {
  EXPECT_EQ(run_tritax("--version").exit_code, 0);
  const Outcome help = run_tritax("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.out.find("advise"), std::string::npos);
}

TEST(Program, WithoutACommandItListsThem) { expect_user_error(run_tritax(""), {"advise", "reproduce"}); }

TEST(Program, AMistypedCommandGetsTheNearestOne) {
  expect_user_error(run_tritax("advize"), {"'advize'", "'advise'"});
}

TEST(Program, AMistypedOptionGetsTheNearestOne) {
  expect_user_error(run_tritax("advise --mahcine mi300x-8"), {"'--mahcine'", "'--machine'"});
}

TEST(Program, AnUnknownMachineGetsTheNearestName) {
  expect_user_error(run_tritax("machines show mi300x-9"), {"mi300x-9", "mi300x-8"});
  expect_user_error(run_tritax("advise -M 64 -N 64 -K 64 --machine h200-5"), {"h200-5", "h200-4"});
}

TEST(Program, AnUnknownPatternGetsTheNearestName) {
  expect_user_error(run_tritax("simulate " + kSmallProblem + "--pattern fused-sequentail"),
                    {"fused-sequentail", "fused-sequential"});
}

TEST(Program, SizesThatAreNoSizesAreRefusedWithTheFlag) {
  for (const std::string size : {"0", "-5", "99999999999999999999", "2097152", "12x", "1.5", ""}) {
    expect_user_error(run_tritax("advise -N 64 -K 64 --machine mi300x-8 -M '" + size + "'"), {"-M"});
  }
}

TEST(Program, MissingSizesAndMachineAreNamed) {
  expect_user_error(run_tritax("advise -M 64 -N 64 --machine mi300x-8"), {"-K"});
  expect_user_error(run_tritax("advise -M 64 -N 64 -K 64"), {"--machine"});
}

TEST(Program, MoreGpusThanTheMachineHasAreRefusedWithItsNumber) {
  expect_user_error(run_tritax("advise -M 4096 -N 4096 -K 4096 --machine mi300x-8 --gpus 9"),
                    {"--gpus", "9", "8"});
  expect_user_error(
      run_tritax("simulate --pattern library -M 4096 -N 4096 -K 4096 --machine h200-4 --gpus 8"),
      {"--gpus", "8", "4"});
}

TEST(Program, ATileThatDoesNotFitAComputeUnitIsRefusedWithTheTile) {
  for (const std::string command :
       {"advise ", "simulate --pattern fused-sequential ", "schedule --pattern bulk-synchronous "}) {
    expect_user_error(run_tritax(command + kSmallProblem + "--tile 512x512x64"), {"512x512x64", "MI300X"});
  }
  expect_user_error(run_tritax("advise " + kSmallProblem + "--tile 256x256"), {"--tile", "256x256x64"});
  expect_user_error(run_tritax("advise " + kSmallProblem + "--tile 0x256x64"), {"--tile"});
}

TEST(Program, AnUnwritableOutputIsRefusedBeforeTheWorkStarts) {
  const ScratchDirectory scratch;
  // The search would take minutes on one core; `timeout` would end it with 124.
  const Outcome outcome =
      run_tritax("advise -M 65536 -N 65536 -K 65536 --machine mi300x-8 --threads 1 --json " +
                     scratch.path("missing/result.json"),
                 "timeout 20");
  expect_user_error(outcome, {"--json", "missing/result.json"});
  expect_user_error(run_tritax("machines --csv " + scratch.path("")), {"--csv", "directory"});
  EXPECT_EQ(scratch.file_count(), 0U);
}

TEST(Program, AFailedCommandLeavesNoFileAndKeepsAnOldOne) {
  const ScratchDirectory scratch;
  const std::string old_file = scratch.write("old.json", "old");
  expect_user_error(
      run_tritax("simulate " + kSmallProblem + "--pattern fused-sequential --tile 512x512x64 --csv " +
                 scratch.path("new.csv") + " --json " + old_file),
      {"512x512x64"});
  EXPECT_EQ(read_file(old_file), "old");
  EXPECT_EQ(scratch.file_count(), 1U);
}

TEST(Program, AReaderThatHasGoneCostsNoFile) {
  const ScratchDirectory scratch;
  const std::string csv = scratch.path("table.csv");
  const std::string gone = scratch.path("gone");
  const std::string code = scratch.path("code");
  run_tritax("machines --csv " + csv + "; echo $? > " + code + ") | (exec <&-; touch " + gone + ')',
             "(while [ ! -e " + gone + " ]; do sleep 0.01; done;");
  EXPECT_EQ(read_file(code), "141\n");
  EXPECT_EQ(read_file(csv), run_tritax("machines --csv -").out);
  EXPECT_EQ(scratch.file_count(), 3U);
}

TEST(Program, AnOutputDoesNotReplaceAnInput) {
  const ScratchDirectory scratch;
  const std::string schedule = scratch.path("s.json");
  run_tritax("schedule " + kSmallProblem + "--pattern fused-sequential -o " + schedule);
  const std::string before = read_file(schedule);
  const std::string problem = "simulate " + schedule + " --machine mi300x-8 --json ";
  expect_user_error(run_tritax(problem + schedule), {"--json", "s.json", "twice"});
  expect_user_error(run_tritax(problem + scratch.path("./s.json")), {"--json", "s.json", "twice"});
  EXPECT_EQ(read_file(schedule), before);
  EXPECT_EQ(scratch.file_count(), 1U);
}

TEST(Program, AClosedStandardStreamLendsItsNumberToNoFile) {
  const ScratchDirectory scratch;
  const std::string csv = scratch.path("table.csv");
  run_tritax("machines --csv " + csv + " >&-");
  EXPECT_EQ(read_file(csv), run_tritax("machines --csv -").out);
}

TEST(Program, ADirectoryIsNoSchedule) {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.path("d.json"));
  expect_user_error(run_tritax("check " + scratch.path("d.json")), {"d.json", "directory"});
}

TEST(Program, ChecksAllScenariosOfAFileWithSeveralWorkloads) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("mix.toml", R"([defaults]
machine = "mi300x-8"
[[scenario]]
id = "product"
workload = "gemm-all-scatter"
m = 512
n = 512
k = 256
gpus = 2
pattern = "library"
[[scenario]]
id = "access"
workload = "remote-access"
operation = "get"
peers = "one"
bytes = "1 MiB"
)");
  EXPECT_EQ(run_tritax("check " + file).out, "product: sound\naccess: sound\n");
}

TEST(Program, AnInputFileIsNotTakenForAnOutput) {
  const ScratchDirectory scratch;
  const std::string scenario = scratch.write("scenario.toml", "# mine\n");
  expect_user_error(run_tritax("simulate --json " + scenario), {"--json", "scenario.toml"});
  EXPECT_EQ(read_file(scenario), "# mine\n");
}

TEST(Program, ATruncatedScheduleIsRefusedWithItsFileName) {
  const ScratchDirectory scratch;
  const std::string whole = scratch.path("whole.json");
  ASSERT_EQ(run_tritax("schedule --pattern fused-sequential " + kSmallProblem + "-o " + whole).exit_code, 0);
  const std::string text = read_file(whole);
  for (const double share : {0.0, 0.3, 0.99}) {
    const auto length = static_cast<std::size_t>(share * static_cast<double>(text.size()));
    const std::string cut = scratch.write("cut.json", text.substr(0, length));
    for (const std::string command : {"simulate ", "check ", "explain "}) {
      expect_user_error(run_tritax(command + cut + " --machine mi300x-8"), {"cut.json"});
    }
  }
}

TEST(Program, AnUnreadableInputIsRefusedWithItsName) {
  expect_user_error(run_tritax("simulate missing.toml"), {"missing.toml"});
  expect_user_error(run_tritax("simulate missing.json --machine mi300x-8"), {"missing.json"});
  expect_user_error(run_tritax("reproduce missing.toml"), {"missing.toml"});
}

TEST(Program, OptionsThatAScheduleFileCannotFollowAreRefused) {
  const ScratchDirectory scratch;
  const std::string file = scratch.path("s.json");
  ASSERT_EQ(run_tritax("schedule --pattern library " + kSmallProblem + "-o " + file).exit_code, 0);
  expect_user_error(run_tritax("simulate " + file), {"--machine"});
  expect_user_error(run_tritax("simulate " + file + " --machine mi300x-8 --tile 128x128x64"),
                    {"--tile", "s.json"});
  expect_user_error(run_tritax("simulate " + file + " --machine mi300x-8 -M 5"), {"-M", "s.json"});
}

TEST(Program, OutputThatIsNoTerminalHasNoColoursAndNoProgressBar) {
  const Outcome outcome = run_tritax("advise " + kSmallProblem);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(outcome.err, "");
}

TEST(Program, CtrlCInASearchEndsWith130AndLeavesNoPartialFile) {
  const ScratchDirectory scratch;
  const std::string file = scratch.path("advice.json");
  const Outcome outcome =
      run_tritax("advise -M 65536 -N 65536 -K 65536 --machine mi300x-8 --threads 1 --json " + file,
                 "timeout --preserve-status --signal INT 2");
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_NE(outcome.err.find("interrupted"), std::string::npos) << outcome.err;
  if (std::filesystem::exists(file)) {
    const json advice = json::parse(read_file(file));
    EXPECT_TRUE(advice.at("interrupted").get<bool>());
    EXPECT_FALSE(advice.at("candidates").empty());
    EXPECT_NE(outcome.out.find("pattern"), std::string::npos);
    EXPECT_EQ(scratch.file_count(), 1U);
  } else {
    EXPECT_EQ(scratch.file_count(), 0U);
  }
}

TEST(Program, BeingTerminatedLeavesNoFile) {
  const ScratchDirectory scratch;
  const Outcome outcome =
      run_tritax("advise -M 65536 -N 65536 -K 65536 --machine mi300x-8 --threads 1 --json " +
                     scratch.path("advice.json"),
                 "timeout --foreground --preserve-status --signal TERM 1");
  EXPECT_EQ(outcome.exit_code, 128 + 15);
  EXPECT_EQ(scratch.file_count(), 0U);
}

TEST(Program, CtrlCInASimulationEndsWith130AndLeavesNoFile) {
  const ScratchDirectory scratch;
  const Outcome outcome = run_tritax(
      "explain --pattern fused-sequential -M 65536 -N 65536 -K 4096 --machine mi300x-8 "
      "--threads 1 --json " +
          scratch.path("why.json"),
      "timeout --foreground --preserve-status --signal INT 1");
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_EQ(scratch.file_count(), 0U);
}

}  // namespace
}  // namespace tritax
