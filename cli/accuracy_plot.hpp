// Accuracy over speedup as SVG, both axes linear: one line per sparsity pattern, one point per sparsity.
// Points that no other point beats in both values are marked and joined. The SVG file is self-contained.
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
  std::string name;                   // points are joined in this order
  std::vector<AccuracyPoint> points;  // in the order in which they are joined
};

struct AccuracyPlot {
  std::string title;
  std::string subtitle;
  std::vector<AccuracyLine> lines;
};

// The points of all lines that no other point beats in both speedup and accuracy, slowest first.
std::vector<AccuracyPoint> pareto_points(const AccuracyPlot& plot);

// The whole SVG document.
std::string to_svg(const AccuracyPlot& plot);

}  // namespace tritax::cli
