// The program as a user meets it: exit codes, messages, and what is (not) left on disk.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cli/terminal.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using nlohmann::json;
using test::Outcome;
using test::read_file;
using test::run_tritax;
using test::ScratchDirectory;

const std::string kProblem = "-M 1024 -N 1024 -K 256 --machine mi300x-8 --gpus 4 ";

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
                         testing::Values("advise", "taxonomy", "layer", "simulate", "explain", "trace",
                                         "check", "schedule", "patterns", "machines", "reproduce",
                                         "validate"));

TEST(Program, VersionAndHelpEndWithZero) {
  EXPECT_EQ(run_tritax("--version").exit_code, 0);
  const Outcome help = run_tritax("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.out.find("advise"), std::string::npos);
}

TEST(Program, AResultThatNobodyCanGetIsAnError) {
  expect_user_error(run_tritax("patterns >&-"), {"standard output: cannot write"});
  expect_user_error(run_tritax("patterns --json - >&-"), {"standard output: cannot write"});
  const ScratchDirectory scratch;
  EXPECT_EQ(run_tritax("machines show h200-4 --json '" + scratch.path("m.json") + "' <&-").exit_code, 0);
  EXPECT_FALSE(json::parse(read_file(scratch.path("m.json"))).empty());
}

TEST(Program, NamesOutOfFilesCannotSteerTheTerminal) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write(
      "s.toml",
      "[[scenario]]\nid = \"a\"\nmachine = \"mi300x-8\"\n"
      "workload = \"gemm-all-scatter\"\npattern = \"a\\u001b[2Jb\"\ngpus = 4\nm = 8\nn = 8\nk = 8\n");
  expect_user_error(run_tritax("simulate '" + file + "'"), {"s.toml:5: control character 0x1b"});
  // A name of the command line comes back in the message.
  const Outcome outcome = run_tritax("simulate \"$(printf 'a\\033[2Jb.toml')\"");
  expect_user_error(outcome, {"a\\x1b[2Jb.toml"});
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
}

TEST(Program, WithoutACommandItListsThem) { expect_user_error(run_tritax(""), {"advise", "reproduce"}); }

TEST(Program, AMistypedCommandGetsTheNearestOne) {
  expect_user_error(run_tritax("advize"), {"'advize'", "'advise'"});
}

TEST(Program, AMistypedOptionGetsTheNearestOne) {
  expect_user_error(run_tritax("advise --mahcine mi300x-8"), {"'--mahcine'", "'--machine'"});
}

TEST(Program, AnOptionIsNoValueOfTheOneBeforeIt) {
  const ScratchDirectory scratch;
  const std::string there = "cd '" + scratch.path("") + "' &&";
  const std::string trace = "trace --pattern fused-sequential " + kProblem;
  expect_user_error(run_tritax(trace + "-o --json", there), {"--output", "'--json'", "trace --help"});
  expect_user_error(run_tritax("advise -M 64 -N 64 -K 64 --machine --gpus 2"), {"--machine", "'--gpus'"});
  EXPECT_EQ(scratch.file_count(), 0u);
  EXPECT_EQ(run_tritax("machines --csv ./--json", there).exit_code, 0);
  EXPECT_EQ(scratch.file_count(), 1u);
}

TEST(Program, AnUnknownMachineGetsTheNearestName) {
  expect_user_error(run_tritax("machines show mi300x-9"), {"mi300x-9", "mi300x-8"});
  expect_user_error(run_tritax("advise -M 64 -N 64 -K 64 --machine h200-5"), {"h200-5", "h200-4"});
}

TEST(Program, AnUnknownPatternGetsTheNearestName) {
  expect_user_error(run_tritax("simulate " + kProblem + "--pattern fused-sequentail"),
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
    expect_user_error(run_tritax(command + kProblem + "--tile 512x512x64"), {"512x512x64", "MI300X"});
  }
  expect_user_error(run_tritax("advise " + kProblem + "--tile 256x256"), {"--tile", "256x256x64"});
  expect_user_error(run_tritax("advise " + kProblem + "--tile 0x256x64"), {"--tile"});
}

TEST(Program, AKnobThatThePatternLacksIsRefusedWithThoseThatItHas) {
  for (const std::string command : {"simulate ", "explain ", "check ", "trace -o - ", "schedule "}) {
    expect_user_error(run_tritax(command + kProblem + "--pattern fused-sequential --comm-cus 48"),
                      {"--comm-cus: fused-sequential has no such knob", "--tile, --waves", "--gemm-cus"});
    expect_user_error(run_tritax(command + kProblem + "--pattern library --tile 128x128x64"),
                      {"--tile: library has no such knob; it has --form"});
  }
}

TEST(Program, AnUnknownWorkloadGetsTheNearestName) {
  const std::string names = "gemm-all-scatter, ";
  expect_user_error(
      run_tritax("simulate --workload all-gahter --rows 64 --cols 64 --machine h200-4"),
      {"--workload: unknown workload 'all-gahter', did you mean 'all-gather'?; the workloads are " + names});
  expect_user_error(run_tritax("advise --workload=nonsense " + kProblem),
                    {"--workload: unknown workload 'nonsense'; "});
  expect_user_error(run_tritax("patterns --workload gem"), {"--workload: unknown workload 'gem'"});
  expect_user_error(run_tritax("machines --workload all-gather"),
                    {"'--workload' is no option of this command"});
}

TEST(Program, AFormerNameOfAWorkloadMeansIt) {
  const std::string sizes = " -M 256 -N 256 -K 256 --rows 64 --cols 64 --machine h200-4 --pattern streams";
  const Outcome former = run_tritax("simulate --workload gemm-beside-all-gather" + sizes);
  EXPECT_EQ(former.exit_code, 0) << former.err;
  EXPECT_EQ(former.out, run_tritax("simulate --workload gemm-beside-collective" + sizes).out);
}

TEST(Program, AWorkloadHasItsOwnOptionsOnly) {
  const std::string help = run_tritax("simulate --workload all-gather --help").out;
  for (const std::string option : {"--rows NUMBER", "--cols NUMBER", "--gpus NUMBER", "--comm-cus NUMBER",
                                   "--comm-tile MxN", "--peer-order NAME", "--posted-bytes-per-peer BYTES"}) {
    EXPECT_NE(help.find("  " + option + ' '), std::string::npos) << option << " is not in " << help;
  }
  for (const std::string option : {"--tile", "--waves", "--gemm-cus", "-M"}) {
    EXPECT_EQ(help.find("  " + option + ' '), std::string::npos) << option << " is in " << help;
  }
  EXPECT_EQ(run_tritax("simulate --workload=all-gather --help").out, help);
  EXPECT_EQ(run_tritax("simulate --workload gemm-all-scatter --help").out, run_tritax("simulate --help").out);
  expect_user_error(run_tritax("simulate --pattern library --rows 5 " + kProblem + "--workload all-gather"),
                    {"'-M' is no option of this command"});
  EXPECT_EQ(run_tritax("simulate --workload all-gather --help").out.find("--host-barriers"),
            std::string::npos);
  EXPECT_NE(run_tritax("simulate --help").out.find("--host-barriers"), std::string::npos);
}

TEST(Program, WhatAnotherWorkloadMayNotBeIsRefusedWithItsOptions) {
  const std::string gather = "simulate --workload all-gather --pattern library --cols 256 --machine h200-4 ";
  expect_user_error(run_tritax(gather),
                    {"--rows: missing; give the sizes --rows, --cols (or --bytes) and --machine"});
  expect_user_error(run_tritax(gather + "--rows 0"), {"--rows: 0 is out of range"});
  expect_user_error(run_tritax(gather + "--rows 64 --gpus 1"),
                    {"--gpus: ", "2 to the number of GPUs of the machine"});
  expect_user_error(run_tritax(gather + "--rows 64 --gpus 5"),
                    {"--gpus: 5 is more than the machine 'h200-4' has; give 2 to 4"});
  expect_user_error(run_tritax(gather + "--rows 64 --comm-cus 8"),
                    {"--comm-cus: library has no such knob; it has --lists, --form"});
  const std::string access =
      "simulate --workload remote-access --machine h200-4 --operation get --peers one ";
  expect_user_error(run_tritax(access),
                    {"--bytes: missing; give --operation, --peers, --bytes and --machine"});
  for (const std::string size : {"1MB", "MiB", "-4", "1.5MiB"}) {
    expect_user_error(run_tritax(access + "--bytes " + size),
                      {"--bytes: '" + size + "' is not a size", "64KiB"});
  }
  expect_user_error(run_tritax(access + "--bytes 4096GiB"), {"--bytes: 4096GiB is out of range"});
  expect_user_error(run_tritax(access + "--bytes 1MiB --gpus 4"), {"gpus = 4", "peers = \"one\""});
}

TEST(Program, AKnobThatAnotherWorkloadLacksIsRefusedAndOneThatItHasIsTaken) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("mix.toml",
                                         "[defaults]\nmachine = \"h200-4\"\ngpus = 2\n"
                                         "[[scenario]]\nid = \"product\"\nworkload = \"gemm-all-scatter\"\n"
                                         "pattern = \"bulk-synchronous\"\nm = 512\nn = 512\nk = 256\n"
                                         "[[scenario]]\nid = \"gather\"\nworkload = \"all-gather\"\n"
                                         "rows = 256\ncols = 256\nknobs = { comm_cus = 8 }\n");
  EXPECT_EQ(run_tritax("check " + file + " --comm-cus 16").out, "product: sound\ngather: sound\n");
  expect_user_error(run_tritax("check " + file + " --group-m 4"),
                    {"--group-m: scenario 'gather' is of the workload all-gather, which has no such knob"});
  EXPECT_EQ(run_tritax("check " + file + " --group-m 4 --id product").exit_code, 0);
  // --workload only says whose options are meant.
  EXPECT_EQ(run_tritax("check " + file + " --workload all-gather --comm-tile 64x64").exit_code, 0);
  expect_user_error(run_tritax("check " + file + " --workload all-gather --rows 4"),
                    {"--rows: ", "mix.toml"});
  expect_user_error(run_tritax("check " + file + " --pattern push --id product"),
                    {"--pattern: unknown pattern 'push'", "fused-sequential"});
}

TEST(Program, AKnobThatOneOfSeveralPatternsHasIsTaken) {
  const ScratchDirectory scratch;
  const std::string file =
      scratch.write("list.toml",
                    "[[scenario]]\nid = \"one\"\nmachine = \"mi300x-8\"\n"
                    "workload = \"gemm-all-scatter\"\nm = 512\nn = 512\nk = 256\ngpus = 2\n"
                    "pattern = [\"library\", \"fused-sequential\", \"producer-consumer\"]\n"
                    "knobs = { comm_cus = 16 }\n");
  EXPECT_EQ(run_tritax("simulate " + file + " --lock exchange").exit_code, 0);
  EXPECT_EQ(run_tritax("simulate " + file + " --id one/fused-sequential").exit_code, 0);  // the file's knobs
  expect_user_error(run_tritax("simulate " + file + " --id one/fused-sequential --lock exchange"),
                    {"--lock: fused-sequential has no such knob"});
  EXPECT_EQ(run_tritax("advise " + file + " --id one/fused-sequential --lock exchange").exit_code, 0);
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
      run_tritax("simulate " + kProblem + "--pattern fused-sequential --tile 512x512x64 --csv " +
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
  run_tritax("schedule " + kProblem + "--pattern fused-sequential -o " + schedule);
  const std::string before = read_file(schedule);
  const std::string problem = "simulate " + schedule + " --machine mi300x-8 --json ";
  expect_user_error(run_tritax(problem + schedule), {"--json", "s.json", "twice"});
  expect_user_error(run_tritax(problem + scratch.path("./s.json")), {"--json", "s.json", "twice"});
  EXPECT_EQ(read_file(schedule), before);
  EXPECT_EQ(scratch.file_count(), 1U);
}

TEST(Program, AnInputIsKnownWhateverTheOutputOptionLooksLike) {
  const ScratchDirectory scratch;
  const std::string schedule = scratch.path("s.json");
  run_tritax("schedule " + kProblem + "--pattern fused-sequential -o " + schedule);
  const std::string before = read_file(schedule);
  expect_user_error(run_tritax("trace " + schedule + " --machine mi300x-8 -o" + schedule),
                    {"s.json", "twice"});
  EXPECT_EQ(read_file(schedule), before);
}

TEST(Program, TwoOutputsAreNotOneFileInTwoSpellings) {
  const ScratchDirectory scratch;
  const std::string there = "cd '" + scratch.path("") + "' &&";
  for (const std::string& csv : {std::string("./new"), scratch.path("new")}) {
    expect_user_error(run_tritax("machines --json new --csv " + csv, there), {"--csv", "--json", "new"});
  }
  EXPECT_EQ(scratch.file_count(), 0U);
}

TEST(Program, AnEmptyValueIsNotTheSameAsNone) {
  for (const std::string option : {"--id", "--machine", "--pattern", "--json", "--csv", "--dtype"}) {
    expect_user_error(run_tritax("simulate --pattern library " + kProblem + option + " ''"),
                      {option + ": ", "empty"});
    expect_user_error(run_tritax("simulate --pattern library " + kProblem + option + "="),
                      {option + ": ", "empty"});
  }
  expect_user_error(run_tritax("check ''"), {"argument 2", "empty"});
}

TEST(Program, KnobsAreRefusedWithTheirRealLimits) {
  const auto refused = [](const std::string& option, const std::vector<std::string>& values,
                          const std::string& allowed) {
    for (const std::string& value : values) {
      expect_user_error(
          run_tritax("simulate --pattern producer-consumer -M 1024 -N 1024 -K 256 --machine mi300x-8 " +
                     option + " " + value),
          {option, allowed});
    }
  };
  refused("--waves", {"0", "-1", "32", "99999999999999999999"}, "give 1, 2, 4, 8 or 16");
  for (const std::string option : {"--gemm-cus", "--comm-cus"}) {
    refused(option, {"0", "-1", "99999999999999999999"}, "at most the compute units of the machine");
  }
  refused("--tile", {"0x64x64", "-16x64x64", "64x1024x64"}, "multiples of 16 up to 512");
  refused("--comm-tile", {"0x64", "8192x64"}, "multiples of 16 up to 4096");
  refused("--seed", {"-1", "99999999999999999999"}, "0 to 9223372036854775807");
  refused("--gpus", {"0", "-1", "99999999999999999999"}, "1 to the number of GPUs of the machine");
}

TEST(Program, AClosedStandardStreamLendsItsNumberToNoFile) {
  const ScratchDirectory scratch;
  const std::string csv = scratch.path("table.csv");
  expect_user_error(run_tritax("machines --csv " + csv + " >&-"), {"standard output: cannot write"});
  EXPECT_EQ(read_file(csv), run_tritax("machines --csv -").out);
}

TEST(Program, ADirectoryIsNoSchedule) {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.path("d.json"));
  expect_user_error(run_tritax("check " + scratch.path("d.json")), {"d.json", "directory"});
}

TEST(Program, ADirectoryIsNoInputFile) {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.path("d.toml"));
  const std::string folder = scratch.path("d.toml");
  for (const std::string command :
       {"simulate ", "machines show ", "reproduce ", "validate --measured ", "validate --ops ",
        "validate --library ", "calibrate -o - --microbench ",
        "trace --pattern library -M 64 -N 64 -K 64 --machine mi300x-8 -o - --measured "}) {
    expect_user_error(run_tritax(command + folder), {"d.toml: cannot be read: it is a directory"});
  }
}

// A scenario file of one scenario "one" with these lines changed.
std::string scenario_with(const std::string& machine, const std::string& knobs) {
  return "[[scenario]]\nid = \"one\"\nmachine = \"" + machine +
         "\"\nworkload = \"gemm-all-scatter\"\nm = 1024\nn = 1024\nk = 256\ngpus = 2\n"
         "pattern = \"producer-consumer\"\nknobs = { " +
         knobs + " }\n";
}

TEST(Program, WhatTheMachineDoesNotAllowIsRefusedWithThePlaceOfTheScenario) {
  const ScratchDirectory scratch;
  const std::string tile = scratch.write("tile.toml", scenario_with("mi300x-8", "tile = [512, 512, 64]"));
  const std::string machine = scratch.write("machine.toml", scenario_with("mi300x", ""));
  for (const std::string command : {"simulate ", "explain ", "check ", "trace -o - ", "schedule "}) {
    expect_user_error(run_tritax(command + tile), {"tile.toml:1: scenario \"one\": ", "512x512x64"});
    expect_user_error(run_tritax(command + machine),
                      {"machine.toml:1: scenario \"one\": ", "\"mi300x\"", "mi300x-8"});
  }
  expect_user_error(run_tritax("advise " + machine), {"machine.toml:1: scenario \"one\": ", "mi300x-8"});
  // The machine of the command line is not the file's.
  const Outcome other = run_tritax("simulate " + tile + " --machine mi300y");
  expect_user_error(other, {"--machine: ", "mi300y"});
  EXPECT_EQ(other.err.find("tile.toml"), std::string::npos) << other.err;
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
knobs = { form = "eager" }
[[scenario]]
id = "access"
workload = "remote-access"
operation = "get"
peers = "one"
bytes = "1 MiB"
)");
  EXPECT_EQ(run_tritax("check " + file).out,
            "product: sound in whatever order its streams start\naccess: sound\n");
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
  ASSERT_EQ(run_tritax("schedule --pattern fused-sequential " + kProblem + "-o " + whole).exit_code, 0);
  expect_user_error(run_tritax("simulate " + whole), {"--machine: missing", "tritax machines", "whole.json"});
  const std::string text = read_file(whole);
  for (const double share : {0.0, 0.3, 0.99}) {
    const auto length = static_cast<std::size_t>(share * static_cast<double>(text.size()));
    const std::string cut = scratch.write("cut.json", text.substr(0, length));
    for (const std::string command : {"simulate ", "check ", "explain "}) {
      expect_user_error(run_tritax(command + cut + " --machine mi300x-8"), {"cut.json"});
    }
    // That the machine is missing as well is not what is wrong first.
    expect_user_error(run_tritax("simulate " + cut), {"cut.json:", "ends too early"});
  }
}

TEST(Program, AnUnreadableInputIsRefusedWithItsName) {
  expect_user_error(run_tritax("simulate missing.toml"), {"missing.toml"});
  expect_user_error(run_tritax("simulate missing.json --machine mi300x-8"), {"missing.json"});
  expect_user_error(run_tritax("simulate missing.json"), {"missing.json: cannot be read"});
  expect_user_error(run_tritax("reproduce missing.toml"), {"missing.toml"});
}

TEST(Program, WhatNeverEndsIsRefusedAsEveryKindOfInput) {
  const ScratchDirectory scratch;
  const std::string reader = "timeout 60";  // would end it with 124
  for (const std::string command : {"simulate /dev/zero", "simulate /dev/urandom", "reproduce /dev/zero",
                                    "validate --measured /dev/zero", "machines show /dev/zero"}) {
    expect_user_error(run_tritax(command, reader), {"/dev/", "cannot be read"});
  }
  for (const std::string name : {"endless.json", "trace.json"}) {
    std::filesystem::create_symlink("/dev/zero", scratch.path(name));
  }
  expect_user_error(run_tritax("simulate --machine mi300x-8 " + scratch.path("endless.json"), reader),
                    {"endless.json: cannot be read"});
  expect_user_error(
      run_tritax("trace --pattern library " + kProblem + "-o - --measured " + scratch.path("trace.json"),
                 reader),
      {"trace.json: cannot be read"});
  expect_user_error(run_tritax("simulate /dev/stdin", "yes | " + reader),
                    {"/dev/stdin: cannot be read: it is larger than 64 MB"});
}

TEST(Program, OptionsThatAScheduleFileCannotFollowAreRefused) {
  const ScratchDirectory scratch;
  const std::string file = scratch.path("s.json");
  ASSERT_EQ(run_tritax("schedule --pattern library " + kProblem + "-o " + file).exit_code, 0);
  expect_user_error(run_tritax("simulate " + file), {"--machine"});
  expect_user_error(run_tritax("simulate " + file + " --machine mi300x-8 --tile 128x128x64"),
                    {"--tile", "s.json"});
  expect_user_error(run_tritax("simulate " + file + " --machine mi300x-8 -M 5"), {"-M", "s.json"});
}

TEST(Program, OutputThatIsNoTerminalHasNoColoursAndNoProgressBar) {
  const Outcome outcome = run_tritax("advise " + kProblem);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(outcome.err.find_first_of("\x1b\r["), std::string::npos) << outcome.err;
}

// … but lines of what takes long: a file is no terminal either.
TEST(Progress, IsWrittenInLinesWhereThereIsNoTerminal) {
  using namespace std::chrono_literals;
  ::testing::internal::CaptureStderr();
  {
    cli::Progress progress("validating", 20ms);
    progress.update(3, 12);
    std::this_thread::sleep_for(300ms);
  }
  {
    cli::Progress short_work("nothing", 1h);
    short_work.update(1, 2);
  }
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(lines.starts_with("tritax: validating: 3/12, 0 s, ")) << lines;
  EXPECT_EQ(lines.find("nothing"), std::string::npos);
  EXPECT_EQ(lines.find_first_of("\x1b\r["), std::string::npos);
  // Pauses double, so few of them come in fifteen times the first one.
  const auto count = std::count(lines.begin(), lines.end(), '\n');
  EXPECT_GE(count, 1);
  EXPECT_LE(count, 4);
}

}  // namespace
}  // namespace tritax
