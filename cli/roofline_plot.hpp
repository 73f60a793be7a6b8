// A roofline as SVG: attained rates over arithmetic intensity, both logarithmic, below the ceilings of matrix
// cores and of every level of memory. A multiplying kernel has one marker per level. The SVG file is
// self-contained.
#pragma once

#include <string>

#include "sim/study/run_roofline.hpp"

namespace tritax::cli {

// The whole SVG document. Throws UserError where no matrix core works, because there is no roof.
std::string roofline_picture(const RunRoofline& roofline, const std::string& title,
                             const std::string& subtitle);

}  // namespace tritax::cli
