// A parity plot as SVG: predictions over measurements, both axes logarithmic with equal scales, so that equal
// relative errors lie at equal distances from the diagonal. The SVG file is self-contained.
#pragma once

#include <string>
#include <vector>

namespace tritax::cli {

struct ParityPoint {
  double measured = 0;   // above 0; both in the unit that the axis labels name
  double predicted = 0;  // above 0
  std::string series;    // one colour and marker per series; the legend is in order of first appearance
  std::string label;     // shown as a tooltip by viewers
};

struct ParityPlot {
  std::string title;
  std::string subtitle;
  std::string x_label;
  std::string y_label;
  double band = 0.1;  // drawn around the diagonal: predicted / measured from 1 - band to 1 + band
  std::vector<ParityPoint> points;
};

// The whole SVG document. The legend gives each series its number of points and median |error|.
std::string to_svg(const ParityPlot& plot);

}  // namespace tritax::cli
