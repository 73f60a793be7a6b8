// Times of several series over one value as SVG, both axes logarithmic, so that a power law is a straight
// line and equal ratios are equal distances. The file needs nothing beside it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tritax::cli {

struct SweepLine {
  std::string name;                               // in the legend
  std::vector<std::pair<double, double>> points;  // value and time, both above 0; values rise
  bool joined = true;                             // by a line; else each point stands for itself
};

struct SweepPlot {
  std::string title;
  std::string subtitle;
  std::string x_label;
  std::string y_label;
  std::vector<SweepLine> lines;
  std::vector<double> crossovers;  // values where the lowest line changes; drawn from top to bottom
  int decimals = 1;                // of what a point says of itself
};

// The whole SVG document.
std::string to_svg(const SweepPlot& plot);

}  // namespace tritax::cli
