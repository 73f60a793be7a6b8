// The parity plot: well-formed, complete, and every point where its numbers say.
#include "cli/parity_plot.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/run_tritax.hpp"

namespace tritax {
namespace {

using cli::ParityPlot;
using cli::to_svg;

ParityPlot plot_of(std::vector<cli::ParityPoint> points) {
  ParityPlot plot;
  plot.title = "title";
  plot.x_label = "measured time (us)";
  plot.y_label = "predicted time (us)";
  plot.points = std::move(points);
  return plot;
}

struct Place {
  double x = 0;
  double y = 0;
};

// The circles that are points of the first series, by their tooltip.
Place circle_of(const std::string& svg, const std::string& label) {
  const std::regex pattern("<title>" + label + "</title><circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  std::smatch found;
  EXPECT_TRUE(std::regex_search(svg, found, pattern)) << svg;
  return found.empty() ? Place{} : Place{std::stod(found[1]), std::stod(found[2])};
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(ParityPlot, PutsEqualRatiosAtEqualDistancesOnBothAxes) {
  const std::string svg =
      to_svg(plot_of({{10, 10, "a", "p"}, {100, 100, "a", "q"}, {1000, 100, "a", "r"}, {100, 10, "a", "s"}}));
  const Place p = circle_of(svg, "p");
  const Place q = circle_of(svg, "q");
  const Place r = circle_of(svg, "r");
  const Place s = circle_of(svg, "s");
  EXPECT_NEAR(q.x - p.x, r.x - q.x, 0.2);  // a decade each
  EXPECT_NEAR(q.x - p.x, p.y - q.y, 0.2);  // on either axis
  EXPECT_NEAR(r.y, q.y, 0.2);
  EXPECT_NEAR(s.x - q.x, 0, 0.2);
  EXPECT_NEAR(s.y - q.y, q.x - p.x, 0.2);  // a tenth of the time lies a decade below the diagonal
}

TEST(ParityPlot, HasALegendWithRowsAndMedianErrorOfEverySeries) {
  const std::string svg =
      to_svg(plot_of({{100, 110, "first", "p"}, {100, 70, "first", "q"}, {50, 50, "second", "r"}}));
  EXPECT_NE(svg.find(">first<"), std::string::npos);
  EXPECT_NE(svg.find(">second<"), std::string::npos);
  EXPECT_NE(svg.find(">20.0 %<"), std::string::npos);  // midway between 10 % and 30 %
  EXPECT_NE(svg.find(">0.0 %<"), std::string::npos);
  EXPECT_NE(svg.find("measured time (us)"), std::string::npos);
}

TEST(ParityPlot, IsWellFormedWhateverTheNames) {
  ParityPlot plot = plot_of({{1, 2, "<a> & \"b\"", "x < y"}});
  plot.title = "a < b & c";
  const std::string svg = to_svg(plot);
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  EXPECT_EQ(svg.find("<a>"), std::string::npos);
  for (const std::string tag : {"g", "text", "title", "svg"}) {
    EXPECT_EQ(count(svg, "<" + tag + " ") + count(svg, "<" + tag + ">"), count(svg, "</" + tag + ">")) << tag;
  }
}

TEST(ParityPlot, OfOnePointOrNoneStillHasAxes) {
  for (const auto& points : {std::vector<cli::ParityPoint>{}, {{3, 3, "a", "p"}}}) {
    const std::string svg = to_svg(plot_of(points));
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
  }
}

TEST(ValidatePlot, IsWrittenWholeAndRefusedBeforeTheWorkWhenItCannotBe) {
  const test::ScratchDirectory scratch;
  const std::string rows =
      scratch.write("rows.csv",
                    "id,pattern,gpus,m,n,k,dtype,tile_m,tile_n,tile_k,gemm_cus,comm_cus,group_m,peer_order,"
                    "lock,launch,runs,"
                    "wall_us,wall_p10_us,wall_p90_us,device_us,device_p10_us,device_p90_us\n"
                    "tiny,fused-sequential,2,512,1024,256,bf16,128,128,64,0,0,8,rotated,load-store,stream,20,"
                    "30.5,29,32,20.25,20,"
                    "21\n");
  const std::string svg = scratch.path("parity.svg");
  const test::Outcome good = test::run_tritax("validate --measured " + rows + " --plot " + svg);
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_NE(test::read_file(svg).find("fused-sequential"), std::string::npos);
  EXPECT_EQ(scratch.file_count(), 2u);
  for (const std::string& target : {scratch.path("no/such/folder.svg"), std::string("-")}) {
    const test::Outcome bad = test::run_tritax("validate --measured " + rows + " --plot " + target);
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_EQ(bad.out, "");
    EXPECT_NE(bad.err.find("--plot"), std::string::npos) << bad.err;
  }
}

TEST(ParityPlot, DrawsTimesThatNoAxisHoldsAtItsEdge) {
  ParityPlot plot;
  for (const double value : {0.0, 1e-300, 20.0, 1e300, std::numeric_limits<double>::infinity()}) {
    plot.points.push_back({20, value, "a", ""});
    plot.points.push_back({value, 20, "a", ""});
  }
  const std::string svg = to_svg(plot);
  EXPECT_LT(svg.size(), 100'000u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("cx=\"inf"), std::string::npos);
}

}  // namespace
}  // namespace tritax
