// How many workgroups share the iterations of a product, by grid models (model/cost/grid_model.hpp) that were
// fitted to runs, and a selector that asks them.
//
// A model is of one kernel on one machine: an option (select_by_tree.hpp) without its grid, and a dtype.
// Which runs belong to it follows from their schedules, so no workload is asked what its patterns do.
//
//   Example: of 256×3584×8192 in tiles of 128×128×32, 56 tiles of 256 iterations, `grid_shares_of` the
//   schedule of stream-k with grid = 108 says {56, 256, 108}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/grid_model.hpp"
#include "model/schedule/schedule.hpp"
#include "model/select/selector.hpp"

namespace tritax {

// The knob that says how many workgroups share.
inline constexpr std::string_view kGridKnob = "grid";
inline constexpr std::string_view kGridModelSchema = "tritax.grid-model/1";

// What a schedule says to the model.
struct GridShares {
  DType dtype = DType::fp16;  // of the operands
  std::int64_t tiles = 0;
  std::int64_t iterations = 0;  // of every tile
  std::int64_t grid = 0;        // workgroups that have a share
};

// Of a schedule of one kernel on one GPU whose workgroups, all resident, share all iterations of all tiles
// evenly, each a range without a gap (Stream-K, and whole tiles in equal numbers); empty for any other.
std::optional<GridShares> grid_shares_of(const Schedule& schedule);

struct FittedGridModel {
  std::string option;  // "stream-k tile=128x128x64"
  DType dtype = DType::fp16;
  std::int64_t runs = 0;
  GridFit fit;
};

struct GridModels {
  std::string workload;
  std::string machine;                  // that they were fitted on
  std::vector<FittedGridModel> models;  // at least one

  std::string to_json() const;
  // Throws UserError for anything that to_json does not write.
  static GridModels from_json(std::string_view text, const std::string& origin);
};

// The option of a model with the grid that the model finds the fastest, and how long it says that takes.
struct GridPick {
  Proposal proposal;
  double model_ns = 0;
};

// Those of all models of the problem's dtype, the fastest by its model first, each with a grid of up to one
// workgroup a compute unit, or the one that is held fixed; none of options that cannot be built. Throws
// UserError, with `origin` in front, for a problem of another workload and for options that it does not have.
std::vector<GridPick> grid_picks(const GridModels& models, const std::string& origin, const Choices& choices);

// `models` outlives the selector; `origin` stands in front of messages. It tries the options of all models of
// the problem's dtype, each with the grid that its model finds the fastest of up to one workgroup a compute
// unit, or the one that is held fixed, and the baseline. Selecting throws UserError for a problem of another
// workload and for options that the workload does not have. Where no option can be built, or none is of that
// dtype, the default knobs of all patterns are tried.
Selector grid_model_selector(const GridModels& models, const std::string& origin);

}  // namespace tritax
