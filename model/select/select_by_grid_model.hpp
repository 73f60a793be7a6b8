// Selects how many workgroups share the iterations of a product, by grid models (model/cost/grid_model.hpp)
// that are fitted to runs.
//
// A model belongs to one kernel on one machine: an option (select_by_tree.hpp) without its grid, and a dtype.
// The schedules of runs decide which runs belong to a model, so the fit needs no knowledge of patterns.
//
//   Example: 256×3584×8192 in tiles of 128×128×32 has 56 tiles of 256 iterations; `grid_shares_of` the
//   schedule of stream-k with grid = 108 returns {56, 256, 108}.
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

// The knob with the number of sharing workgroups.
inline constexpr std::string_view kGridKnob = "grid";
inline constexpr std::string_view kGridModelSchema = "tritax.grid-model/1";

// The inputs of the model from a schedule.
struct GridShares {
  DType dtype = DType::fp16;  // of the operands
  std::int64_t tiles = 0;
  std::int64_t iterations = 0;  // per tile
  std::int64_t grid = 0;        // workgroups with a share
};

// For a schedule of one kernel on one GPU with resident workgroups that share all iterations of all tiles
// evenly, each a range without a gap (Stream-K, and whole tiles in equal numbers); empty for any other
// schedule.
std::optional<GridShares> grid_shares_of(const Schedule& schedule);

struct FittedGridModel {
  std::string option;  // "stream-k tile=128x128x64"
  DType dtype = DType::fp16;
  std::int64_t runs = 0;
  GridFit fit;
};

struct GridModels {
  std::string workload;
  std::string machine;                  // of the fitted runs
  std::vector<FittedGridModel> models;  // at least one

  std::string to_json() const;
  // Throws UserError for anything that to_json does not write.
  static GridModels from_json(std::string_view text, const std::string& origin);
};

// The option of a model with the model's fastest grid and its time.
struct GridPick {
  Proposal proposal;
  double model_ns = 0;
};

// The picks of all models of the problem's dtype, sorted by model time, each with a grid of up to one
// workgroup per compute unit, or with the pinned grid; without options that cannot be built. Throws UserError
// that begins with `origin` for a problem of another workload and for options that the workload does not
// have.
std::vector<GridPick> grid_picks(const GridModels& models, const std::string& origin, const Choices& choices);

// `models` outlives the selector; messages begin with `origin`. The selector tries grid_picks() and the
// baseline. Selecting throws UserError for a problem of another workload and for options that the workload
// does not have. If no option can be built, or no option has the dtype, the selector tries the default knobs
// of all patterns.
Selector grid_model_selector(const GridModels& models, const std::string& origin);

}  // namespace tritax
