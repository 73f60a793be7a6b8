// tritax roofline: speedups by pattern, accuracies and their front, the picture, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/accuracy_plot.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kRoofline = "roofline --network resnet-50 --batch 64 --machine h100-4 ";

nlohmann::json roofline_of(const std::string& arguments) {
  const Outcome outcome = run_tritax(kRoofline + arguments + " --json -");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

TEST(Roofline, DenseIsOneAndWhatIsAskedForIsThere) {
  const nlohmann::json result = roofline_of("--patterns dense,2:4,block16x16 --sparsity 0.5,0.75");
  EXPECT_EQ(result["schema"], "tritax.roofline/1");
  ASSERT_EQ(result["rows"].size(), 4U);  // dense and 2:4 have one sparsity each
  EXPECT_EQ(result["rows"][0]["speedup"], 1.0);
  EXPECT_EQ(result["rows"][1]["sparsity"], 0.5);
  EXPECT_GT(result["rows"][3]["speedup"], result["rows"][2]["speedup"]);
  double sum = 0;
  for (const auto& layer : result["rows"][3]["layers"]) {
    sum += layer["count"].get<double>() *
           std::max(layer["compute_us"].get<double>(), layer["memory_us"].get<double>());
  }
  EXPECT_NEAR(sum, result["rows"][3]["time_us"].get<double>(), 1e-9 * sum);
}

TEST(Roofline, FasterMemoryTakesLessTimeWhereMemoryDecides) {
  const auto time_us = [](const std::string& change) {
    return roofline_of("--patterns outputs --sparsity 0.9 " + change)["rows"][0]["time_us"].get<double>();
  };
  EXPECT_LT(time_us("--set gpu.hbm_bandwidth=8TB/s"), time_us(""));
}

TEST(Roofline, DrawsAccuraciesThatAreAskedForAndNamesTheOthers) {
  const ScratchDirectory folder;
  const std::string table = folder.write(
      "mine.csv", "pattern,sparsity,accuracy\nunstructured,0.9,75.2\n2:4,0.5,76.1\nblock8x8,0.5,70\n");
  const std::string picture = folder.path("front.svg");
  const Outcome outcome = run_tritax(kRoofline + ("--accuracy " + table) + " --plot " + picture);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("block8x8 at 0.5"));
  EXPECT_THAT(outcome.out, HasSubstr("75.20"));
  EXPECT_THAT(read_file(picture), AllOf(HasSubstr("accuracy (%)"), HasSubstr("2:4"), HasSubstr("90 %")));
}

TEST(Roofline, SaysWhatIsWrong) {
  const ScratchDirectory folder;
  const auto refused = [](const std::string& arguments, const std::string& text) {
    const Outcome outcome = run_tritax(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(text)) << arguments;
  };
  refused("roofline --machine h100-4", "--network: missing");
  refused("roofline --network vit-b", "--machine: missing");
  refused(std::string(kRoofline) + "--sparsity 1.5", "give 0 to 1");
  refused(std::string(kRoofline) + "--patterns unstructured --format bits", "csr, coo or ell");
  const std::string twice = folder.write("twice.csv", "pattern,sparsity,accuracy\n2:4,0.5,76\n2:4,0.5,77\n");
  refused(kRoofline + ("--accuracy " + twice), "twice.csv:3");
  const std::string far = folder.write("far.csv", "pattern,sparsity,accuracy\n2:4,0.5,176\n");
  refused(kRoofline + ("--accuracy " + far), "far.csv:2");
}

TEST(RunRoofline, SaysWhichCeilingTheOperationsLieUnder) {
  const ScratchDirectory folder;
  const std::string picture = folder.path("roof.svg");
  const std::string run =
      "roofline -M 1024 -N 1024 -K 1024 --gpus 2 --pattern bulk-synchronous --machine mi300x-8 ";
  const Outcome outcome = run_tritax(run + "--plot " + picture + " --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json answer = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(answer["schema"], "tritax.run-roofline/1");
  EXPECT_EQ(answer["points"].back()["operation"], "run");
  EXPECT_GT(answer["gb_per_s"]["links"].get<double>(), 0);
  double least = 0;
  for (const auto& point : answer["points"]) {
    if (point["operation"] == "matmul") least = point["compute_least_us"].get<double>();
  }
  // Of one GPU of two.
  EXPECT_NEAR(least, std::pow(1.024, 3) * 1e3 / answer["peak_tflop_per_s"]["fp16"].get<double>(), 1e-6);
  EXPECT_THAT(read_file(picture), AllOf(HasSubstr("matrix cores, fp16"), HasSubstr("last-level cache")));
}

// A band of 4 nonzeros a row, 2 flops each.
TEST(RunRoofline, CountsFlopsOfSparseProductsUnderMemoryAlone) {
  const Outcome outcome = run_tritax(
      "roofline --workload spmv --structure banded --rows 5000 --row-length 4 --pattern thread-mapped "
      "--machine h100-4 --json -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json answer = nlohmann::json::parse(outcome.out);
  EXPECT_TRUE(answer["peak_tflop_per_s"].empty());
  for (const auto& point : answer["points"]) {
    const std::string operation = point["operation"];
    EXPECT_EQ(point["flops"], operation == "store" ? 0 : 2.0 * 4 * 5000) << operation;
    EXPECT_NE(point["bound"], "matrix cores") << operation;
  }
}

TEST(RunRoofline, OfMovingDataAloneHasNoPicture) {
  const ScratchDirectory folder;
  const std::string run =
      "roofline --workload all-gather --machine h100-4 --gpus 2 --rows 256 --cols 1024 --comm-cus 8 ";
  EXPECT_EQ(run_tritax(run).exit_code, 0) << run_tritax(run).err;
  const Outcome refused = run_tritax(run + "--plot " + folder.path("roof.svg"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("no matrix core works in this run"));
}

TEST(AccuracyPlot, ItsFrontIsWhatNoPointBeatsInBoth) {
  const cli::AccuracyPlot plot{
      "",
      "",
      {{"a", {{1, 76, "0"}, {1.5, 75, "50"}, {2, 70, "90"}}}, {"b", {{1.4, 75, "x"}, {1.2, 76.5, "y"}}}}};
  std::string front;
  for (const cli::AccuracyPoint& point : cli::pareto_points(plot)) front += point.label + " ";
  EXPECT_EQ(front, "y 50 90 ");
}

}  // namespace
}  // namespace tritax::test
