#include <fmt/format.h>

#include <algorithm>

#include "model/core/ceil_div.hpp"
#include "model/core/error.hpp"
#include "model/cost/power_bound.hpp"
#include "model/parts/attend_tiles.hpp"
#include "model/parts/kernels.hpp"
#include "model/workloads/attention_forward/problem.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kOpsOfTile = 8;  // ranges of keys, where a schedule can hold as many

// Keys per operation: whole blocks.
std::int64_t keys_of_op(const AttentionProblem& problem, const AttentionGrid& grid, std::int64_t block) {
  const std::int64_t room = static_cast<std::int64_t>(kMostScheduled / 2) / grid.tiles() - 1;
  const std::int64_t ops = std::clamp<std::int64_t>(room, 1, kOpsOfTile);
  return ceil_div(ceil_div(problem.context, ops), block) * block;
}

struct Buffers {
  std::int16_t q = 0, k = 0, v = 0, o = 0;
};

Buffers add_buffers(ScheduleBuilder& builder, const AttentionProblem& problem, const MatmulTile& tile) {
  const auto rows = static_cast<std::int32_t>(problem.batch * problem.context);
  const auto d = static_cast<std::int32_t>(problem.depth);
  const auto add = [&](const char* name, std::int64_t heads, std::int32_t tile_rows) {
    return builder.buffer({name, problem.dtype, rows, static_cast<std::int32_t>(heads) * d, tile_rows, d});
  };
  const Buffers buffers{add("Q", problem.heads, tile.m), add("K", problem.kv_heads, tile.n),
                        add("V", problem.kv_heads, tile.n), add("O", problem.heads, tile.m)};
  builder.result(buffers.o);
  for (const std::int16_t buffer : {buffers.q, buffers.k, buffers.v}) builder.input(builder.whole(buffer));
  return buffers;
}

void expect_results(ScheduleBuilder& builder, const AttentionProblem& problem, const Buffers& buffers) {
  for (std::int64_t z = 0; z < problem.batch; ++z) {
    for (std::int64_t head = 0; head < problem.heads; ++head) {
      const Rect rows = head_rect(problem, z, head, 0, problem.context, problem.depth);
      const Rect keys = head_rect(problem, z, head / problem.group(), 0, problem.context, problem.depth);
      builder.expect_attention({buffers.o, 0, rows}, {buffers.q, 0, rows}, {buffers.k, 0, keys},
                               {buffers.v, 0, keys}, problem.causal ? 1 : 0);
    }
  }
}

void add_tile(ScheduleBuilder& builder, const AttentionProblem& problem, const Buffers& buffers,
              const AttentionTile& tile, std::int64_t tile_rows, std::int64_t keys_of_op) {
  const std::int64_t row = tile.block * tile_rows;
  const std::int64_t rows = std::min(tile_rows, problem.context - row);
  const std::int64_t keys = problem.causal ? row + rows : problem.context;
  const std::int64_t first = tile.batch * problem.context;  // row of K
  const Rect rect = head_rect(problem, tile.batch, tile.head, row, rows, problem.depth);
  const std::int64_t column = tile.head / problem.group() * problem.depth;
  ScheduleBuilder::Mask mask;
  if (problem.causal) mask.limit = static_cast<std::int32_t>(first + row + 1);
  for (std::int64_t key = 0; key < keys; key += keys_of_op) {
    builder.attend(buffers.q, rect, buffers.k, buffers.v, static_cast<std::int32_t>(column),
                   static_cast<std::int32_t>(first + key),
                   static_cast<std::int32_t>(first + std::min(keys, key + keys_of_op)), mask);
  }
  builder.store(buffers.o, rect, 0);
}

void check_problem(const AttentionProblem& problem, const AttentionGrid& grid, const Machine& machine) {
  check_dtype(problem.dtype, machine);
  const auto elements = static_cast<double>(2 * problem.batch * problem.context * problem.depth) *
                        static_cast<double>(problem.heads + problem.kv_heads);
  check_memory("this problem", elements * bytes_of(problem.dtype), machine.gpu);
  if (static_cast<double>(grid.tiles()) * 2 <= kMaxOperations) return;
  throw UserError(fmt::format(
      "tile: {} query blocks of {} heads and {} batches are too many to schedule (over {:.0f} tile "
      "operations); use larger tiles",
      grid.blocks, grid.heads, grid.batch, kMaxOperations));
}

// As many workgroups as are resident together.
std::int64_t persistent_workgroups(const Gpu& gpu, const Resources& resources, std::int64_t tiles) {
  return std::min<std::int64_t>(tiles, std::int64_t{gpu.cu_count()} * residents_at_most(gpu, resources));
}

}  // namespace

AttentionGrid grid_of(const AttentionProblem& problem, std::int64_t tile_rows, const Gpu& gpu) {
  return {problem.batch, problem.heads, problem.kv_heads, ceil_div(problem.context, tile_rows), gpu.xcds};
}

Schedule attention_schedule(std::string_view name, Mapping mapping, const AttentionProblem& problem,
                            const AttentionKnobs& knobs, const Machine& machine) {
  const AttentionGrid grid = grid_of(problem, knobs.tile.m, machine.gpu);
  check_problem(problem, grid, machine);
  if (const std::string fault = fault_of_mapping(mapping, knobs.form, grid); !fault.empty()) {
    throw UserError(fault);
  }
  ScheduleBuilder builder(std::string(name), 1);
  const Buffers buffers = add_buffers(builder, problem, knobs.tile);
  Kernel kernel = attend_tile_kernel(machine.gpu, problem.dtype, knobs.tile, knobs.profile, 0, "attention");
  const bool vendor = knobs.profile == KernelProfile::vendor;
  if (vendor) kernel.library.routine = LibraryRoutine::plain;
  kernel.placement = knobs.persistent ? Placement::persistent : Placement::dispatch;
  const Resources resources = kernel.resources;
  const std::int32_t index = builder.kernel(std::move(kernel));
  const std::int64_t keys = keys_of_op(problem, grid, knobs.tile.n);
  const std::int64_t workgroups =
      knobs.persistent ? persistent_workgroups(machine.gpu, resources, grid.tiles()) : grid.tiles();
  for (std::int64_t p = 0; p < workgroups; ++p) {
    builder.workgroup(index);
    for (std::int64_t w = p; w < grid.tiles(); w += workgroups) {
      AttentionTile tile = tile_of_workgroup(mapping, knobs.form, grid, w);
      // Causal masks let the last queries see the most keys.
      if (vendor) tile.block = grid.blocks - 1 - tile.block;
      add_tile(builder, problem, buffers, tile, knobs.tile.m, keys);
    }
  }
  builder.launch(0, index);
  builder.host(0, HostOpKind::device_synchronize);
  expect_results(builder, problem, buffers);
  return builder.finish();
}

double attention_bound_ns(const AttentionProblem& problem, const AttentionKnobs& knobs,
                          const Machine& machine) {
  const MatmulTile& tile = knobs.tile;
  double of_head = 0, longest = 0;  // blocks of keys
  for (std::int64_t row = 0; row < problem.context; row += tile.m) {
    const std::int64_t seen = problem.causal ? std::min(problem.context, row + tile.m) : problem.context;
    longest = static_cast<double>(ceil_div(seen, tile.n));
    of_head += longest;
  }
  const double all = of_head * static_cast<double>(problem.batch * problem.heads);
  return attend_bound_ns(machine, problem.dtype, tile, knobs.profile, longest, all);
}

}  // namespace tritax
