// Decision trees as SVG: questions from left to right, yes above no. Each answer at the right has the number
// of its problems in the training set. The SVG file is self-contained.
#pragma once

#include <string>

#include "model/select/decision_tree.hpp"

namespace tritax::cli {

// The whole SVG document. Where features are gathered, three trees stand one below the other.
std::string tree_picture(const TreeSelector& trees, const std::string& title, const std::string& subtitle);

}  // namespace tritax::cli
