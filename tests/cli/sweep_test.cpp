// tritax sweep, export and merge as a user gives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using test::run_tritax;
using testing::HasSubstr;

const std::string kSmallSweep =
    "[point]\nmachine = 'h200-4'\nworkload = 'gemm-all-scatter'\npattern = 'producer-consumer'\n"
    "problem = { n = 512, k = 256, gpus = 2, dtype = 'bf16' }\nknobs.tile = '128x128x64'\nseed = 3\n"
    "[product]\nproblem.m = [512, 768]\nset.fabric.link = ['100GB/s', '0GB/s', '200GB/s']\n";

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(Sweep, StoresWhatEvaluateAnswersAndGoesOnPastABadPoint) {
  const test::ScratchDirectory folder;
  const std::string file = folder.write("small.toml", kSmallSweep);
  const std::string db = folder.path("small.db");
  const auto run = run_tritax("sweep " + file + " -o " + db);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("sweep 'small': 4 points answered"));
  EXPECT_THAT(run.out, HasSubstr("2 refused"));
  EXPECT_THAT(run.err, HasSubstr("fabric.link"));
  const auto rows = lines_of(run_tritax("export --jsonl " + db).out);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_THAT(rows[1].at("error").get<std::string>(), HasSubstr("0GB/s"));
  const auto line =
      run_tritax("evaluate --stdin --machine h200-4 --set fabric.link=200GB/s",
                 R"(echo '{"problem": {"m": 768, "n": 512, "k": 256, "gpus": 2, "dtype": "bf16"},)"
                 R"("pattern": "producer-consumer", "knobs": {"tile": "128x128x64"}, "seed": 3}' |)");
  ASSERT_EQ(line.exit_code, 0) << line.err;
  EXPECT_EQ(rows[5].at("answer"), nlohmann::json::parse(line.out));
  const auto again = run_tritax("sweep " + file + " -o " + db);
  EXPECT_THAT(again.out, HasSubstr("0 points answered"));
}

TEST(Sweep, ExportsARowAPointWithAColumnAKey) {
  const test::ScratchDirectory folder;
  const std::string db = folder.path("small.db");
  run_tritax("sweep " + folder.write("small.toml", kSmallSweep) + " -o " + db);
  const std::string csv = run_tritax("export " + db).out;
  EXPECT_THAT(csv, testing::StartsWith("sweep,number,version,ask,knobs.tile,machine,pattern,problem.dtype,"));
  EXPECT_THAT(csv.substr(0, csv.find('\n')),
              HasSubstr("set.fabric.link,workload,time_us,bound_us,operations,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
  EXPECT_EQ(run_tritax("export " + db + " -o " + folder.path("a.csv")).exit_code, 0);
  EXPECT_EQ(test::read_file(folder.path("a.csv")), csv);
  const auto parquet = run_tritax("export " + db + " -o " + folder.path("a.parquet"));
  EXPECT_EQ(parquet.exit_code, 2);
  EXPECT_THAT(parquet.err, HasSubstr("read_sweep"));
  const auto other = run_tritax("export --sweep smal " + db);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("did you mean 'small'"));
}

TEST(Sweep, ShardsMergeToTheSameBytes) {
  const test::ScratchDirectory folder;
  const std::string file = folder.write("small.toml", kSmallSweep);
  run_tritax("sweep " + file + " -o " + folder.path("one.db"));
  std::string parts;
  for (const std::string shard : {"1", "2", "3"}) {
    const std::string part = folder.path(shard + ".db");
    ASSERT_EQ(run_tritax("sweep " + file + " --shard " + shard + "/3 -o " + part).exit_code, 0);
    parts += ' ' + part;
  }
  const auto merged = run_tritax("merge " + folder.path("all.db") + parts);
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("3.db: 2 of 2 points added"));
  EXPECT_EQ(run_tritax("export " + folder.path("all.db")).out,
            run_tritax("export " + folder.path("one.db")).out);
  const auto itself = run_tritax("merge " + folder.path("1.db") + parts);
  EXPECT_EQ(itself.exit_code, 2);
  for (const std::string shard : {"0/3", "4/3", "3", "a/b"}) {
    const auto refused = run_tritax("sweep " + file + " --shard " + shard);
    EXPECT_EQ(refused.exit_code, 2) << shard;
    EXPECT_THAT(refused.err, HasSubstr("--shard"));
  }
}

TEST(Sweep, AsksOtherQuestionsToo) {
  const test::ScratchDirectory folder;
  const auto answers_of = [&](const std::string& text) {
    const std::string db = folder.path("q.db");
    const auto run = run_tritax("sweep --retry " + folder.write("q.toml", text) + " -o " + db);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    return lines_of(run_tritax("export --jsonl " + db).out);
  };
  const std::string problem =
      "[point]\nmachine = 'h200-4'\nworkload = 'gemm-all-scatter'\nproblem = { n = 512, k = 256, gpus = 2 "
      "}\n";
  const std::string sizes = "[product]\nproblem.m = [256, 512]\n";
  const auto advised = answers_of("ask = 'advise'\n" + problem + "selector = 'defaults'\n" + sizes);
  ASSERT_EQ(advised.size(), 2u);
  EXPECT_GT(advised[0].at("answer").at("time_us"), 0);
  EXPECT_GT(advised[0].at("answer").at("candidates").size(), 1u);
  const std::string fused = problem + "pattern = 'fused-sequential'\n" + sizes;
  const auto bounds = answers_of("ask = 'closed-form'\n" + fused);
  EXPECT_GT(bounds[0].at("answer").at("bound_us"), 0);
  EXPECT_LE(bounds[0].at("answer").at("bound_us"), answers_of(fused)[0].at("answer").at("time_us"));
  const auto layers = answers_of(
      "ask = 'layer'\n[point]\nmodel = 'llama-3-8b'\ntp = 2\nselector = 'defaults'\n"
      "[zip]\nmachine = ['h200-4', 'mi300x-8']\nbatch = [1, 2]\n");
  EXPECT_GE(layers[1].at("answer").at("speedup"), 1);
  EXPECT_FALSE(layers[1].at("answer").at("steps").empty());
}

TEST(Sweep, ADryRunCountsAndStoresNothing) {
  const test::ScratchDirectory folder;
  const std::string file = folder.write("small.toml", kSmallSweep);
  const std::string db = folder.path("small.db");
  const std::size_t files = folder.file_count();
  const auto run = run_tritax("sweep --dry-run " + file + " -o " + db);
  EXPECT_THAT(run.out, HasSubstr("6 points; 6 to be answered"));
  EXPECT_THAT(run.out, HasSubstr("about "));
  EXPECT_EQ(folder.file_count(), files);
  run_tritax("sweep " + file + " -o " + db);
  EXPECT_THAT(run_tritax("sweep --dry-run " + file + " -o " + db).out,
              HasSubstr("6 points; 0 to be answered"));
}

TEST(Sweep, RefusesWhatIsNoSweepOrNoDatabase) {
  const test::ScratchDirectory folder;
  const std::string file = folder.write("small.toml", kSmallSweep);
  EXPECT_EQ(run_tritax("sweep").exit_code, 2);
  EXPECT_EQ(run_tritax("sweep " + folder.path("none.toml")).exit_code, 2);
  const auto onto_input = run_tritax("sweep " + file + " -o " + file);
  EXPECT_EQ(onto_input.exit_code, 2);
  EXPECT_EQ(test::read_file(file), kSmallSweep);
  const auto text = run_tritax("export " + file);
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.err, HasSubstr("not a database"));
}

}  // namespace
}  // namespace tritax
