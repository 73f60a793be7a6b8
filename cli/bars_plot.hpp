// Times as stacked horizontal bars, one a row, as SVG: what each consists of, its whole, and what is said of
// it. The file needs nothing beside it.
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
