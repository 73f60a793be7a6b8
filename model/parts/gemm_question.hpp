// Input of the axes of a search of GEMM kernels. model/parts/gemm_space.cpp makes all axes but the axis of
// tiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/parts/library_tile.hpp"
#include "model/workload/knob_space.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct GemmQuestion {
  const Pattern& pattern;
  GemmShape gemm;
  int gpus = 1;
  const Machine& machine;
  GemmKnobs base;      // defaults and pins
  const Values& pins;  // knobs that were given

  std::optional<std::int32_t> pin(std::string_view column) const {
    const auto value = pins.if_given(column);
    return value ? std::optional(static_cast<std::int32_t>(*value)) : std::nullopt;
  }
};

template <typename T>
void add_unique(std::vector<T>& values, const T& value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

// Sides, depths and waves of tiles, the usual tile first. Tiles of one shape m × n are a group: a search
// continues among the depths and waves of the best shapes. Throws UserError when no tile fits.
Axis tile_axis(const GemmQuestion& question);

}  // namespace tritax
