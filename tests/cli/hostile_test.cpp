// Hostile input: the program answers with a message or a result, soon, and
// nothing that was there before is lost.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using test::Outcome;
using test::read_file;
using test::run_tritax;
using test::ScratchDirectory;

const std::string kHostileProblem = "-M 512 -N 512 -K 256 --gpus 2 ";
const std::string kHostileRun = "simulate --pattern fused-sequential " + kHostileProblem;

void expect_short_refusal(const Outcome& outcome, const std::vector<std::string>& words) {
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  EXPECT_LT(outcome.err.size(), 2000u);
  for (const std::string& word : words) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << "'" << word << "' is not in: " << outcome.err;
  }
}

std::string h200_text() { return read_file(TRITAX_SOURCE_DIR "/model/machine/machines/h200-4.toml"); }

TEST(Hostile, MessagesAreOneShortLineWhateverTheyRepeat) {
  const std::string much = "$(head -c 100000 /dev/zero | tr '\\0' x)";
  expect_short_refusal(run_tritax("advise -N 64 -K 64 --machine h200-4 -M " + much), {"-M", "…"});
  expect_short_refusal(run_tritax("advise -M 64 -N 64 -K 64 --machine " + much), {"unknown machine", "…"});
  expect_short_refusal(run_tritax(much), {"…"});
  expect_short_refusal(run_tritax("advise --" + much), {"…", "is no option"});
  expect_short_refusal(run_tritax("advise -N 64 -K 64 --machine h200-4 -M \"$(printf '5\\n.')\""),
                       {"5\\x0a."});
  expect_short_refusal(run_tritax("\"$(printf 'a\\033[2J')\""), {"a\\x1b[2J"});
}

TEST(Hostile, OutputsOfOneCommandAreAllNewOrAllOld) {
  const ScratchDirectory scratch;
  const std::string csv = scratch.write("t.csv", "old");
  expect_short_refusal(run_tritax("machines --json /dev/full --csv '" + csv + "'"),
                       {"--json", "No space left"});
  EXPECT_EQ(read_file(csv), "old");
  EXPECT_EQ(scratch.file_count(), 1u);
  EXPECT_EQ(run_tritax("machines --json '" + scratch.path("t.json") + "' --csv '" + csv + "'").exit_code, 0);
  EXPECT_NE(read_file(csv), "old");
  EXPECT_EQ(scratch.file_count(), 2u);
}

TEST(Hostile, AMachineThatOnlyAScenarioNamesIsNotReplaced) {
  const ScratchDirectory scratch;
  const std::string machine = scratch.write("machine.txt", h200_text());
  const std::string scenario =
      scratch.write("s.toml", "[[scenario]]\nid = 'a'\nmachine = '" + machine +
                                  "'\nworkload = 'gemm-all-scatter'\npattern = 'library'\ngpus = 2\nm = 512\n"
                                  "n = 512\nk = 256\n");
  expect_short_refusal(run_tritax("simulate '" + scenario + "' --json '" + machine + "' > /dev/null"),
                       {"--json", "it was read as an input"});
  EXPECT_EQ(read_file(machine), h200_text());
}

TEST(Hostile, APipeIsReadOnceAndANamedOneNotAtAll) {
  const ScratchDirectory scratch;
  const std::string machine = scratch.write("machine.toml", h200_text());
  const Outcome outcome = run_tritax(kHostileRun + "--machine /dev/stdin --csv -", "cat '" + machine + "' |");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string pipe = scratch.path("pipe");
  expect_short_refusal(
      run_tritax(kHostileRun + "--machine '" + pipe + "'", "mkfifo '" + pipe + "' && timeout 20"),
      {"named pipe"});
}

TEST(Hostile, OptionsThatWouldChangeNothingAreRefused) {
  expect_short_refusal(run_tritax(kHostileRun + "--machine h200-4 --links --json -"), {"--links"});
  expect_short_refusal(
      run_tritax("schedule --pattern library " + kHostileProblem + "--machine h200-4 --pretty --csv -"),
      {"--pretty"});
  expect_short_refusal(run_tritax("validate --rows --json -"), {"--rows"});
}

TEST(Hostile, AFileThatIsGivenTwiceIsRefused) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("m.csv", "id\n");
  for (const std::string flag : {"--measured", "--ops", "--library"}) {
    expect_short_refusal(
        run_tritax("validate " + flag + " '" + file + "' " + flag + " '" + scratch.path("./m.csv") + "'"),
        {flag, "is given twice"});
  }
}

TEST(Hostile, NamesWithControlCharactersAreRefusedOrEscaped) {
  const ScratchDirectory scratch;
  expect_short_refusal(run_tritax("calibrate --name \"$(printf 'a\\033[2Jb')\" -o '" +
                                  scratch.path("m.toml") + "' --microbench no.csv"),
                       {"--name", "control character 0x1b"});
  const std::string schedule =
      scratch.write("s.json",
                    "{\"schema\": \"tritax.schedule/1\", \"name\": \"a\\u0000\\u001b[2Jb\", \"ranks\": 1, "
                    "\"kernels\": [{\"name\": "
                    "\"k\", \"workgroups\": [{\"ops\": [{\"op\": \"barrier\"}]}]}], \"host\": [[{\"op\": "
                    "\"launch\", \"kernel\": "
                    "\"k\"}]]}");
  const Outcome outcome = run_tritax("simulate '" + schedule + "' --machine h200-4 --csv -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("a\\x00\\x1b[2Jb"), std::string::npos) << outcome.out;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRITAX_UNDER_ASAN 1
#endif
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(TRITAX_UNDER_ASAN)  // which reserves terabytes
TEST(Hostile, ALackOfMemoryOrThreadsIsNoDefect) {
  const std::string problem = "advise -M 32768 -N 32768 -K 32768 --machine h200-4 > /dev/null";
  expect_short_refusal(run_tritax(problem + " --threads 1", "ulimit -v 100000;"), {"out of memory"});
  expect_short_refusal(run_tritax(problem + " --threads 1000", "ulimit -v 800000;"), {"--threads"});
}
#endif

TEST(Hostile, MoreWorkgroupsOfARoleThanComputeUnitsAreRefused) {
  expect_short_refusal(run_tritax("advise -M 512 -N 512 -K 256 --gpus 1 --comm-cus 304 --machine h200-4"),
                       {"comm_cus: 304", "1 to 132"});
  expect_short_refusal(
      run_tritax("simulate --workload all-gather --pattern push --rows 512 --cols 512 --gpus 2 "
                 "--comm-cus 304 --machine h200-4"),
      {"comm_cus: 304", "1 to 132"});
}

TEST(Hostile, MoreGpusThanAnyoneCouldSimulateAreRefusedWithTheirNumber) {
  const ScratchDirectory scratch;
  std::string text = h200_text();
  const std::string gpus = "gpus_per_node = 4";
  text.replace(text.find(gpus), gpus.size(), "gpus_per_node = 1024");
  const std::string machine = scratch.write("m.toml", text);
  expect_short_refusal(
      run_tritax("simulate --pattern library -M 256 -N 4096 -K 64 --gpus 1024 --machine '" + machine + "'",
                 "timeout 60"),
      {"pattern library on 1024 GPUs", "are too many"});
}

}  // namespace
}  // namespace tritax
