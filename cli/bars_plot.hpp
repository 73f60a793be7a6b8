// Times as stacked horizontal bars, one per row, as SVG: the parts of each time, the total, and a remark. The
// SVG file is self-contained.
#pragma once

#include <string>
#include <vector>

#include "sim/simulate.hpp"

namespace tritax::cli {

struct Bar {
  std::string label;
  TimeAccount account;  // its parts add up to the time
  double band = 0;      // relative, drawn around the end; 0: none
  std::string mark;     // behind the time: "tie with 1"
};

struct BarsPlot {
  std::string title;
  std::string subtitle;
  std::vector<Bar> bars;
};

// The whole SVG document. Parts that no bar has are not in the legend.
std::string to_svg(const BarsPlot& plot);

}  // namespace tritax::cli
