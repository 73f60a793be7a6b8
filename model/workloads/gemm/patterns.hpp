// A GEMM on one GPU, C = A·B: one pattern per way to share its products out among workgroups.
//
// Every hand-written pattern is one plan of model/parts/shared_gemm.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/parts/library_tile.hpp"
#include "model/parts/shared_gemm.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// Number of workgroups among which composable_kernel's policies split: the grid, or, as in one version of its
// source, the number of split tiles, so that nothing is split along K.
enum class Sharers : std::uint8_t { grid, tiles };
inline constexpr std::array<std::string_view, 2> kSharersNames{"grid", "tiles"};

struct StreamKnobs : GemmKnobs {
  std::int32_t grid = 0;  // resident workgroups; 0: one per compute unit
  std::int32_t split = 2;
  std::int32_t policy = 2;
  Sharers sharers = Sharers::grid;
  Fixup fixup = Fixup::partials;
  std::int32_t groups = 8;  // CUTLASS 3.x: at most this many groups
};

// Room of a GPU for a kernel with this tile.
struct Room {
  std::int64_t units = 1;
  std::int64_t occupancy = 1;  // workgroups per compute unit
  std::int64_t most() const { return units * occupancy; }
};

Schedule build_gemm_library(const GemmShape& gemm, const Machine& machine, const StreamKnobs& knobs);

}  // namespace tritax
