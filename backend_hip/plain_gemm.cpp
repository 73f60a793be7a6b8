#include "backend_hip/plain_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "model/core/error.hpp"
#include "model/patterns/grid_order.hpp"
#include "model/schedule/builder.hpp"

namespace tritax::gpu {

TileSize parse_tile(const std::string& text, const std::string& where) {
  TileSize tile;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%dx%d%c", &tile.m, &tile.n, &rest) != 2 || tile.m < 1 || tile.n < 1) {
    throw UserError(fmt::format("{}: '{}' is not a tile; write rows x columns, as 128x256", where, text));
  }
  return tile;
}

Schedule plain_gemm(const GemmShape& shape, TileSize tile, std::int32_t group_m, std::int32_t compute_units) {
  ScheduleBuilder builder("gemm", 1);
  const std::int32_t k_step = 128 / bytes_of(shape.dtype);
  const std::int16_t a = builder.buffer({"A", shape.dtype, shape.m, shape.k, tile.m, k_step});
  const std::int16_t b = builder.buffer({"B", shape.dtype, shape.k, shape.n, k_step, tile.n});
  const std::int16_t c = builder.buffer({"C", shape.dtype, shape.m, shape.n, tile.m, tile.n});
  builder.result(c);
  const TileGrid grid{(shape.m + tile.m - 1) / tile.m, (shape.n + tile.n - 1) / tile.n};
  Kernel kernel;
  kernel.name = "gemm";
  kernel.tile = {tile.m, tile.n, k_step, 8, Pipeline::overlapped};
  kernel.placement = Placement::persistent;
  const std::int32_t id = builder.kernel(std::move(kernel));
  const std::int32_t workgroups = std::min(compute_units, grid.count());
  for (std::int32_t p = 0; p < workgroups; ++p) {
    builder.workgroup(id);
    for (std::int32_t t = p; t < grid.count(); t += workgroups) {
      const TileIndex index = grouped_tile(t, grid, group_m);
      const Rect rect{index.row * tile.m, index.col * tile.n, std::min(tile.m, shape.m - index.row * tile.m),
                      std::min(tile.n, shape.n - index.col * tile.n)};
      builder.matmul(a, b, rect, 0, shape.k);
      builder.store(c, rect, 0);
    }
  }
  builder.launch(0, id);
  builder.host(0, HostOpKind::device_synchronize);
  return builder.finish();
}

}  // namespace tritax::gpu
