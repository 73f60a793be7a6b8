// Accuracy over speedup as SVG, both axes linear: a line a sparsity pattern, a point a sparsity, and the
// points that no other beats in both marked and joined. The file needs nothing beside it.
#pragma once

#include <string>
#include <vector>

namespace tritax::cli {

struct AccuracyPoint {
  double speedup = 1;
  double accuracy = 0;  // percent
  std::string label;    // "75 %"
};

struct AccuracyLine {
  std::string name;                   // in the legend
  std::vector<AccuracyPoint> points;  // in the order in which they are joined
};

struct AccuracyPlot {
  std::string title;
  std::string subtitle;
  std::vector<AccuracyLine> lines;
};

// The points of all lines that no other point has both more speedup and more accuracy than, slowest first.
std::vector<AccuracyPoint> pareto_points(const AccuracyPlot& plot);

// The whole SVG document.
std::string to_svg(const AccuracyPlot& plot);

}  // namespace tritax::cli
