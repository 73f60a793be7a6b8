// Kernels of one GEMM on one GPU whose products are shared out among workgroups: the iterations of K and the
// tiles of each workgroup (model/parts/decomposition.hpp), the dispatch of workgroups, and how partial sums
// become a tile. Also of many GEMMs of one depth and width, whose tiles lie in one line, group after group.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/parts/decomposition.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_tile.hpp"

namespace tritax {

enum class Fixup : std::uint8_t {
  partials,  // peers store partial sums and raise flags; the owner adds them and stores the tile
  atomics,   // every workgroup adds its part of a tile onto C, which an earlier kernel has cleared
};
inline constexpr std::array<std::string_view, 2> kFixupNames{"partials", "atomics"};

enum class GridForm : std::uint8_t {
  dispatched,  // a share, or a whole tile, per workgroup; the hardware dispatches them to free compute units
  persistent,  // all resident, whole tiles in turn
  stealing,    // all resident; a free workgroup draws the next tile
};

struct GemmPlan {
  std::string_view name;  // of the schedule
  Decomposition split;
  GridForm form = GridForm::dispatched;
  std::int64_t workgroups = 0;  // unless dispatched
  Fixup fixup = Fixup::partials;
  // Persistent grid: the whole tiles of every workgroup; empty: in turn.
  std::vector<std::vector<std::int64_t>> dealt = {};
};

// Rows [row, row + rows) of A and C: a product with columns [column, column + N) of B.
struct ProductGroup {
  std::int32_t row = 0;
  std::int32_t rows = 0;
  std::int32_t column = 0;
};

// Products C_g = A_g·B_g, each with its own rows, and with N × K in common: A_g and C_g one below the other,
// B_g side by side. `all`: the shape with the rows of all groups.
struct GroupedProducts {
  GemmShape all;
  std::vector<ProductGroup> groups;  // in the order in which their tiles are numbered
  std::int64_t columns = 0;          // of B

  // Tiles of a group, in rows and columns of bm × bn.
  std::int64_t tiles_of(std::size_t group, const MatmulTile& tile) const;
  TiledGemm tiled(const MatmulTile& tile) const;
};

// Numbers of the buffers of A, B and C.
struct ProductBuffers {
  std::int16_t a = -1;
  std::int16_t b = -1;
  std::int16_t c = -1;
};
// Adds them, with inputs and expected result. `c_dtype`: of C.
ProductBuffers add_matrices(ScheduleBuilder& builder, const GroupedProducts& products, const MatmulTile& tile,
                            DType c_dtype);

// Adds a kernel of whole tiles of some groups, one per workgroup, with the resources that the tile needs.
std::int32_t add_tiles_kernel(ScheduleBuilder& builder, const Machine& machine,
                              const GroupedProducts& products, const ProductBuffers& buffers,
                              const std::vector<std::size_t>& groups, const GemmKnobs& knobs,
                              std::string_view name);

Schedule build_shared_gemm(const GroupedProducts& products, const Machine& machine, const GemmKnobs& knobs,
                           const GemmPlan& plan);

// C = A·B by this plan. Of the knobs, tile, grid order, lock and launch count. Throws UserError when the tile
// does not fit, or when there are too many partial sums.
Schedule build_shared_gemm(const GemmShape& gemm, const Machine& machine, const GemmKnobs& knobs,
                           const GemmPlan& plan);

}  // namespace tritax
