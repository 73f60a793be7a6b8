#include "model/parts/grid_order.hpp"

#include <algorithm>

#include "model/core/error.hpp"

namespace tritax {

std::int32_t remap_to_dies(std::int32_t workgroup, std::int32_t workgroups, std::int32_t dies) {
  TRITAX_ASSERT(dies > 0 && workgroup >= 0 && workgroup < workgroups, "workgroup outside the grid");
  const std::int32_t die = workgroup % dies;
  const std::int32_t first_of_die = die * (workgroups / dies) + std::min(die, workgroups % dies);
  return first_of_die + workgroup / dies;
}

std::int32_t chunk_to_dies(std::int32_t workgroup, std::int32_t workgroups, std::int32_t dies,
                           std::int32_t chunk) {
  TRITAX_ASSERT(dies > 0 && chunk > 0 && workgroup >= 0 && workgroup < workgroups,
                "workgroup outside the grid");
  const std::int64_t round = std::int64_t{dies} * chunk;
  if (workgroup >= workgroups / round * round) return workgroup;
  const std::int32_t of_die = workgroup / dies;
  return static_cast<std::int32_t>(of_die / chunk * round) + workgroup % dies * chunk + of_die % chunk;
}

TileIndex grouped_tile(std::int32_t tile, const TileGrid& grid, std::int32_t group_m) {
  TRITAX_ASSERT(group_m > 0 && tile >= 0 && tile < grid.count(), "tile outside the grid");
  const std::int32_t height_limit = std::min(group_m, grid.rows);  // also keeps group_m * cols within 32 bits
  const std::int32_t tiles_of_group = height_limit * grid.cols;
  const std::int32_t first_row = tile / tiles_of_group * height_limit;
  const std::int32_t height = std::min(grid.rows - first_row, height_limit);
  const std::int32_t in_group = tile % tiles_of_group;
  return {first_row + in_group % height, in_group / height};
}

}  // namespace tritax
