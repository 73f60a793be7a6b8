// Which matmul kernel runs the tiles of a schedule.
#include <fmt/format.h>

#include "backend_hip/lower.hpp"
#include "model/core/error.hpp"
#include "model/schedule/items.hpp"

namespace tritax::gpu {

namespace {

const Op* first_matmul(const Schedule& schedule, const Kernel& kernel) {
  for (std::size_t p = 0; p < program_count(kernel); ++p) {
    const Workgroup& program = program_of(kernel, p);
    for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
      if (schedule.ops[i].kind == OpKind::matmul) return &schedule.ops[i];
    }
  }
  return nullptr;
}

}  // namespace

const TileTraits* find_tile(const Schedule& schedule, const Kernel& kernel, const DeviceTraits& device) {
  const Op* const matmul = first_matmul(schedule, kernel);
  if (matmul == nullptr) return nullptr;
  const DType dtype = schedule.buffers[static_cast<std::size_t>(matmul->src_buffer)].dtype;
  const TileTraits* best = nullptr;
  std::string known;
  for (const TileTraits& tile : device.tiles) {
    if (tile.dtype != dtype) continue;
    known += fmt::format("{}{}x{}", known.empty() ? "" : ", ", tile.m, tile.n);
    if (tile.m < kernel.tile.m || tile.n < kernel.tile.n) continue;
    if (best == nullptr || tile.m * tile.n < best->m * best->n) best = &tile;
  }
  if (best == nullptr) {
    throw UserError(fmt::format("kernel '{}': {}x{} {} tiles fit no matmul kernel on {}; it has {}",
                                kernel.name, kernel.tile.m, kernel.tile.n, name_of(dtype), device.name,
                                known.empty() ? "none for this dtype" : known));
  }
  return best;
}

}  // namespace tritax::gpu
