// Decision trees as SVG: questions from left to right, yes above no, answers at the right with how many
// problems of the training set each is for. The file needs nothing beside it.
#pragma once

#include <string>

#include "model/select/decision_tree.hpp"

namespace tritax::cli {

// The whole SVG document. Where features are gathered three trees stand below each other.
std::string tree_picture(const TreeSelector& trees, const std::string& title, const std::string& subtitle);

}  // namespace tritax::cli
