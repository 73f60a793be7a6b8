// How good the grids are that grid models choose (model/select/select_by_grid_model.hpp), over many problems:
// each choice simulated, beside other grids and other patterns.
//
// Of every problem are simulated the first choice of the models, with its grid, the same with one workgroup a
// compute unit, with an eighth to seven eighths of that, and with one, two, three, four, six, eight and
// sixteen workgroups a tile where there are no more than compute units; and every pattern but the vendor's at
// its default knobs. The fastest of all is the best.
//
//   Example: of 1024³ on 132 units a model that picks 128 workgroups is right if none of 16, 33, 49, 66, 82,
//   99, 115, 132 and 64 a tile is faster, nor data-parallel tiles.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"
#include "model/select/select_by_grid_model.hpp"
#include "sim/study/choices.hpp"

namespace tritax {

// Options of the table that are no patterns; the first pattern is option 0.
enum class GridOption : std::uint8_t { chosen, all_units, other_grids };
inline constexpr std::size_t kGridOptions = 3;

struct GridTable {
  ChoiceTable table;         // options: patterns, then those of GridOption
  std::size_t patterns = 0;  // the first options
  std::size_t unknown = 0;   // problems that no model knows, which are left out
  double grids_tried = 0;    // mean, of those of a problem
  double choice_ns = 0;      // of one problem, mean on one core

  std::size_t option(GridOption of) const { return patterns + static_cast<std::size_t>(of); }
};

// One problem a scenario, as pattern_table() has them; its knobs hold for all that is tried of it, so a
// problem with other knobs is another row. `origin` stands in front of messages about the models. Throws
// UserError as pattern_table() does, when the models are of another workload, and when they know none of the
// problems.
GridTable grid_table(const std::vector<Scenario>& scenarios, const Machine& machine, const GridModels& models,
                     const std::string& origin);

}  // namespace tritax
