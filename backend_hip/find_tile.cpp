// Finds the matmul kernel for the tiles of a schedule.
#include <fmt/format.h>

#include "backend_hip/lower.hpp"
#include "model/core/error.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/wave_schedule.hpp"

namespace tritax::gpu {

namespace {

const Op* first_with_matrices(const Schedule& schedule, const Kernel& kernel) {
  for (std::size_t p = 0; p < program_count(kernel); ++p) {
    const Workgroup& program = program_of(kernel, p);
    for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
      const OpKind kind = schedule.ops[i].kind;
      if (kind == OpKind::matmul || kind == OpKind::attend) return &schedule.ops[i];
    }
  }
  return nullptr;
}

// The smallest attention kernel, by queries × columns of a head, that fits.
const TileTraits* find_attend_tile(const Kernel& kernel, DType dtype, const DeviceTraits& device) {
  const TileTraits* best = nullptr;
  std::string known;
  for (const TileTraits& tile : device.tiles) {
    if (tile.dtype != dtype || tile.depth == 0) continue;
    known += fmt::format("{}{} of {}", known.empty() ? "" : ", ", tile.m, tile.depth);
    if (tile.m < kernel.tile.m || tile.depth < kernel.tile.k) continue;
    if (best == nullptr || tile.m * tile.depth < best->m * best->depth) best = &tile;
  }
  if (best != nullptr) return best;
  throw UserError(
      fmt::format("kernel '{}': {} queries of {} columns in {} fit no kernel with attention on {}; "
                  "it has {}",
                  kernel.name, kernel.tile.m, kernel.tile.k, name_of(dtype), device.name,
                  known.empty() ? "none for this dtype" : known));
}

}  // namespace

const TileTraits* find_tile(const Schedule& schedule, const Kernel& kernel, const DeviceTraits& device) {
  const Op* const op = first_with_matrices(schedule, kernel);
  if (op == nullptr) return nullptr;
  if (is_wave_schedule(kernel.tile.pipeline)) {
    throw UserError(fmt::format(
        "kernel '{}': its tiles have the pipeline {}, which is simulated and has no kernel on {}; serial and "
        "overlapped are possible",
        kernel.name, kPipelineNames[static_cast<std::size_t>(kernel.tile.pipeline)], device.name));
  }
  const DType dtype = schedule.buffers[static_cast<std::size_t>(op->src_buffer)].dtype;
  if (op->kind == OpKind::attend) return find_attend_tile(kernel, dtype, device);
  const TileTraits* best = nullptr;
  std::string known;
  for (const TileTraits& tile : device.tiles) {
    if (tile.dtype != dtype || tile.depth > 0) continue;
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
