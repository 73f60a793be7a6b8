// How good the grids chosen by grid models are (model/select/select_by_grid_model.hpp), over many problems:
// each choice is simulated, beside other grids and other patterns.
//
// For every problem these runs are simulated: the first choice of the models, with its grid; the same option
// with one workgroup per compute unit, with an eighth to seven eighths of that, and with one, two, three,
// four, six, eight and sixteen workgroups per tile, up to the number of compute units; and every pattern
// except the vendor's at its default knobs. The fastest of all runs is the best.
//
//   Example: for 1024³ on 132 units a model that picks 128 workgroups is right if none of 16, 33, 49, 66, 82,
//   99, 115, 132 and 64 per tile is faster, nor data-parallel tiles.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"
#include "model/select/select_by_grid_model.hpp"
#include "sim/study/choices.hpp"

namespace tritax {

// Options of the table besides patterns; the first pattern is option 0.
enum class GridOption : std::uint8_t { chosen, all_units, other_grids };

struct GridTable {
  ChoiceTable table;         // options: patterns, then GridOption
  std::size_t patterns = 0;  // number of patterns
  std::size_t unknown = 0;   // problems that no model knows; left out
  double grids_tried = 0;    // mean per problem
  double choice_ns = 0;      // mean per problem, on one core

  std::size_t option(GridOption of) const { return patterns + static_cast<std::size_t>(of); }
};

// One problem per scenario, as in pattern_table(); the knobs of a scenario hold for all its runs, so a
// problem with other knobs is another row. `origin` stands in front of messages about the models. Throws
// UserError as pattern_table() does, if the models belong to another workload, and if they know none of the
// problems.
GridTable grid_table(const std::vector<Scenario>& scenarios, const Machine& machine, const GridModels& models,
                     const std::string& origin);

}  // namespace tritax
