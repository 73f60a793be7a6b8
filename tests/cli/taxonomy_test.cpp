// tritax taxonomy: one table, sweeps, refusals, the picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/sweep_plot.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Small, with most knobs held, so that the search is short.
constexpr const char* kSmallSweep =
    "taxonomy -N 256 -K 256 --gpus 2 --machine h200-4 --tile 64x64x64 --waves 4 --group-m 4 ";

json taxonomy_of(const std::string& arguments) {
  const Outcome outcome = run_tritax(kSmallSweep + arguments + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out);
}

TEST(Taxonomy, ColumnsOfEveryPatternAddUpToItsTime) {
  const json result = taxonomy_of("-M 128");
  ASSERT_EQ(result["points"].size(), 1U);
  EXPECT_TRUE(result["sweep"].is_null());
  const json& patterns = result["points"][0]["patterns"];
  EXPECT_EQ(patterns.size(), 5U);
  double last = 0;
  for (const json& one : patterns) {
    double sum = 0;
    for (const char* part :
         {"useful_us", "launch_us", "bulk_synchronous_us", "locality_us", "contention_us", "harness_us"}) {
      sum += one[part].get<double>();
    }
    EXPECT_NEAR(sum, one["time_us"].get<double>(), 1e-6 * sum);
    EXPECT_GE(one["time_us"].get<double>(), last);
    last = one["time_us"];
  }
}

TEST(Taxonomy, ASweepHasItsValuesInStepsOfAFactorOrASum) {
  const auto values = [](const std::string& sweep) {
    std::string text;
    const json result = taxonomy_of("--sweep " + sweep);
    for (const json& point : result["points"]) {
      text += point["at"].get<std::string>() + ' ';
      EXPECT_EQ(std::to_string(point["workload"]["m"].get<int>()), point["at"]);
    }
    return text;
  };
  EXPECT_EQ(values("M=48:200:x2"), "48 96 192 ");
  EXPECT_EQ(values("m=64:200:+64"), "64 128 192 ");
}

TEST(Taxonomy, SweepsSeveralValuesOfAnyOneOption) {
  const json result = taxonomy_of("-M 128 --scale fabric.link=0.5,1");
  EXPECT_EQ(result["sweep"], "fabric.link");
  ASSERT_EQ(result["points"].size(), 2U);
  EXPECT_GE(result["points"][0]["patterns"][0]["time_us"], result["points"][1]["patterns"][0]["time_us"]);
}

TEST(Taxonomy, AValueWithoutAnAnswerDoesNotStopTheOthers) {
  const Outcome outcome =
      run_tritax("taxonomy -M 64 -N 64 -K 64 --machine h200-4 --gpus 2 --tile 64x64x64 --comm-cus 8,999");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("none: see below"));
  EXPECT_THAT(outcome.out, HasSubstr("No answer: "));
}

TEST(Taxonomy, RefusesWhatIsNoSweep) {
  const auto refusal = [](const std::string& arguments) {
    const Outcome outcome = run_tritax("taxonomy -N 64 -K 64 --machine h200-4 " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    return outcome.err;
  };
  EXPECT_THAT(refusal("--sweep M=1"), HasSubstr("--sweep: 'M=1' is not a range; give "
                                                "FIELD=FIRST:LAST:xFACTOR"));
  EXPECT_THAT(refusal("--sweep M=1:8:y2"), HasSubstr("is not a range"));
  EXPECT_THAT(refusal("--sweep gpu=1:4:x2"), HasSubstr("(did you mean 'gpus'?); give one of M, N, K, gpus"));
  EXPECT_THAT(refusal("--sweep dtype=1:2:x2"), HasSubstr("'dtype' is not a numeric field of "
                                                         "gemm-all-scatter"));
  EXPECT_THAT(refusal("--sweep M=8:1:x2"), HasSubstr("the first value must be below the last"));
  EXPECT_THAT(refusal("--sweep M=1:8:x1"), HasSubstr("--sweep: factor: 1 is out of range; give 2 to"));
  EXPECT_THAT(refusal("--sweep M=0:8:+1"), HasSubstr("--sweep -M: 0 is out of range; give 1 to 1048576"));
  EXPECT_THAT(refusal("--sweep M=1:1000000:+1"), HasSubstr("more than 10000 values"));
  EXPECT_THAT(refusal("-M 3 --sweep M=1:8:x2"), HasSubstr("--sweep: -M is given already"));
  EXPECT_THAT(refusal("-M 1,2 --gpus 2,4"), HasSubstr("M and gpus: both have several values"));
  EXPECT_THAT(refusal("-M 64 --plot a.svg"), HasSubstr("--plot: it draws times over a number"));
  EXPECT_THAT(refusal("-M 4,8 --plot a.png"), HasSubstr("the plot is drawn as SVG"));
}

TEST(Taxonomy, DrawsALineAPatternAndACrossoverFromTopToBottom) {
  cli::SweepPlot plot;
  plot.title = "a & b";
  plot.lines = {{"slow <x>", {{1, 10}, {10, 100}, {100, 1000}}}, {"fast", {{1, 20}, {100, 20}}}};
  plot.crossovers = {2};
  const std::string svg = cli::to_svg(plot);
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, HasSubstr("slow &lt;x&gt;: 10.0 at 1</title>"));
  EXPECT_THAT(svg, HasSubstr("the fastest changes"));
  std::size_t lines = 0;
  for (auto at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1)) ++lines;
  EXPECT_EQ(lines, 2U);
}

TEST(Taxonomy, WritesThePictureOfASweep) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("sweep.svg");
  const Outcome outcome = run_tritax(kSmallSweep + std::string("--sweep M=64:128:x2 --plot ") + path);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(read_file(path), HasSubstr("GEMM + all-scatter 64x256x256 fp16 to 128x256x256 fp16"));
}

}  // namespace
}  // namespace tritax::test
