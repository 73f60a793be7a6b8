// The page of `tritax report`: complete, with the numbers of --json; its options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/bars_plot.hpp"
#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kRun =
    "simulate --pattern fused-sequential -M 512 -N 512 -K 512 --gpus 2 --machine mi300x-8 --fast";

// What stands in the page for its script.
ordered_json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return ordered_json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Report, HoldsTheNumbersOfJsonAndTheCommand) {
  const test::ScratchDirectory folder;
  const std::string page = folder.path("report.html");
  const std::string result = folder.path("result.json");
  const auto outcome = test::run_tritax("report " + std::string(kRun) + " -o " + page + " --json " + result);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("report.html: open it in a browser"));
  const ordered_json data = data_of(test::read_file(page));
  EXPECT_EQ(data["schema"], "tritax.report/1");
  EXPECT_EQ(data["kind"], "simulate");
  EXPECT_EQ(data["result"], ordered_json::parse(test::read_file(result)));
  EXPECT_THAT(data["command"].get<std::string>(),
              StartsWith("tritax report simulate --pattern fused-sequential"));
  EXPECT_EQ(data["run"]["time_us"], data["result"]["runs"][0]["time_us"]);
  EXPECT_EQ(data["run"]["timeline"]["operations"], data["run"]["tile_operations"]);
  EXPECT_EQ(data["machines"][0]["name"], "mi300x-8");
  EXPECT_TRUE(data["run"]["with_effect"].empty());  // --fast
}

// Sentences stand beside the result, word for word as the command prints them, which breaks lines.
TEST(Report, SaysWhatTheCommandSays) {
  for (const std::string command :
       {"advise -M 64 -N 512 -K 1024 --gpus 2 --machine h100-4 --selector defaults --fast",
        "layer --model llama-3-8b --phase decode --batch 1 --tp 2 --machine h200-4 --selector defaults"}) {
    const test::ScratchDirectory folder;
    const std::string page = folder.path("report.html");
    const std::string result = folder.path("result.json");
    const auto outcome = test::run_tritax("report " + command + " -o " + page + " --json " + result);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const ordered_json data = data_of(test::read_file(page));
    EXPECT_EQ(data["result"], ordered_json::parse(test::read_file(result))) << command;
    ASSERT_FALSE(data["sentences"].empty()) << command;
    std::string printed = outcome.out;
    std::replace(printed.begin(), printed.end(), '\n', ' ');
    for (const ordered_json& sentence : data["sentences"]) {
      EXPECT_THAT(printed, HasSubstr(sentence.get<std::string>()));
    }
  }
}

TEST(Report, IsOneFileThatAsksNobody) {
  const std::string page = test::run_tritax("report " + std::string(kRun) + " -o -").out;
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr(" src=")));
  EXPECT_THAT(page, Not(HasSubstr("<link")));
  EXPECT_THAT(page, Not(HasSubstr("@@")));
}

// A name from a schedule cannot end the script that holds the data.
TEST(Report, KeepsNamesInsideItsData) {
  const test::ScratchDirectory folder;
  const std::string schedule = folder.path("s.json");
  ASSERT_EQ(test::run_tritax(
                "schedule --pattern fused-sequential -M 512 -N 512 -K 512 --gpus 2 --machine mi300x-8 -o " +
                schedule)
                .exit_code,
            0);
  ordered_json named = ordered_json::parse(test::read_file(schedule));
  named["name"] = "</script><script>alert(1)</script>";
  const std::string changed = folder.write("t.json", named.dump());
  const auto outcome = test::run_tritax("report simulate " + changed + " --machine mi300x-8 --fast -o -");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(data_of(outcome.out)["result"]["runs"][0]["id"], "</script><script>alert(1)</script>");
}

TEST(Report, WritesItsFirstFigureAlone) {
  const test::ScratchDirectory folder;
  const std::string figure = folder.path("figure.svg");
  ASSERT_EQ(test::run_tritax("report " + std::string(kRun) + " --svg " + figure).exit_code, 0);
  EXPECT_THAT(test::read_file(figure), StartsWith("<svg"));
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(Report, RefusesWhatCannotBe) {
  const auto refusal = [](const std::string& arguments) {
    const auto outcome = test::run_tritax("report " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refusal(""), HasSubstr("no command; give one of advise, simulate, layer, validate"));
  EXPECT_THAT(refusal(kRun), HasSubstr("--output: missing; give -o FILE.html"));
  EXPECT_THAT(refusal(std::string(kRun) + " --svg figure.png"),
              HasSubstr("give a file name that ends in .svg"));
  EXPECT_THAT(refusal("advise -M 64,128 -N 512 -K 512 --machine mi300x-8 -o -"),
              HasSubstr("a page shows one question, and 2 are given"));
  EXPECT_THAT(refusal(std::string(kRun) + " -o - --json -"),
              HasSubstr("only one of them can use standard output"));
  EXPECT_THAT(refusal("validate --ops x.csv -o -"), HasSubstr("leave out --ops and --library"));
  const auto without =
      test::run_tritax("report " + std::string(kRun) + " --png figure.png", "env PATH=/nonexistent");
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("--png: needs the program rsvg-convert"));
}

TEST(Report, HasItsOptionsNowhereElse) {
  const auto outcome = test::run_tritax(std::string(kRun) + " -o x.html");
  EXPECT_EQ(outcome.exit_code, 2);
}

// Widths are times: two parts of 30 and 10 us, and another bar half as long.
TEST(BarsPlot, DrawsPartsAsLongAsTheyAre) {
  cli::BarsPlot plot;
  plot.title = "a < b";
  cli::Bar bar{"one", {}, 0, "tie with 1"};
  bar.account.compute_ns = 30000;
  bar.account.launch_ns = 10000;
  cli::Bar half{"two", {}, 0, ""};
  half.account.compute_ns = 20000;
  plot.bars = {bar, half};
  const std::string svg = cli::to_svg(plot);
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg,
              HasSubstr("width=\"390.00\" height=\"22\" fill=\"#0072B2\"><title>useful compute: 30.0 us"));
  EXPECT_THAT(svg, HasSubstr("width=\"130.00\" height=\"22\" fill=\"#E69F00\"><title>launch tax: 10.0 us"));
  EXPECT_THAT(svg, HasSubstr("width=\"260.00\""));
  EXPECT_THAT(svg, HasSubstr("40.0, tie with 1"));
  EXPECT_THAT(svg, Not(HasSubstr("locality tax")));
}

}  // namespace
}  // namespace tritax
