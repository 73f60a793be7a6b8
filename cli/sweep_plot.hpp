// Times of several series over one value as SVG, both axes logarithmic, so that a power law is a straight
// line and equal ratios are equal distances. The SVG file is self-contained.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tritax::cli {

struct SweepLine {
  std::string name;                               // in the legend
  std::vector<std::pair<double, double>> points;  // value and time, both above 0; values rise
  bool joined = true;                             // joined by a line; else single points
};

struct SweepPlot {
  std::string title;
  std::string subtitle;
  std::string x_label;
  std::string y_label;
  std::vector<SweepLine> lines;
  std::vector<double> crossovers;  // values where the lowest line changes; drawn from top to bottom
  int decimals = 1;                // decimals of the label of a point
};

// The whole SVG document.
std::string to_svg(const SweepPlot& plot);

}  // namespace tritax::cli
