// The kernels of one GEMM on one GPU whose products are shared out among workgroups: which iterations of K of
// which tiles belong to which (model/parts/decomposition.hpp), how workgroups come to run, and how partial
// sums become a tile.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/parts/decomposition.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_tile.hpp"

namespace tritax {

enum class Fixup : std::uint8_t {
  partials,  // peers store partial sums and raise flags; the owner adds them and stores the tile
  atomics,   // whoever has a part of a tile adds it onto C, which a kernel before has cleared
};
inline constexpr std::array<std::string_view, 2> kFixupNames{"partials", "atomics"};

enum class GridForm : std::uint8_t {
  dispatched,  // a share, or a whole tile, a workgroup; the hardware sends them as compute units come free
  persistent,  // all resident, whole tiles in turn
  stealing,    // all resident; whoever is free draws the next tile
};

struct GemmPlan {
  std::string_view name;  // of the schedule
  Decomposition split;
  GridForm form = GridForm::dispatched;
  std::int64_t workgroups = 0;  // unless dispatched
  Fixup fixup = Fixup::partials;
};

// C = A·B in that plan; of the knobs tile, grid order, lock and launch count. Throws UserError when the tile
// does not fit, or when partial sums are too many.
Schedule build_shared_gemm(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs,
                           const GemmPlan& plan);

}  // namespace tritax
