#include "model/parts/attend_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/core/error.hpp"
#include "model/cost/attend_cost.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/cost/matmul_power.hpp"
#include "model/cost/power_bound.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/schedule/wave_schedule.hpp"

namespace tritax {

namespace {

constexpr std::array<std::string_view, 2> kAttendKernelNames{"pipelined", "mma-sync"};

// A function-local static, because tables of workloads read it before main() begins.
const std::array<Spec, 4>& attend_knobs() {
  static const std::array<Spec, 4> knobs{{
      {.name = "tile",
       .help = "queries per workgroup and keys per step, for example 128x64",
       .low = kTileStep,
       .high = kMaxGemmTile,
       .usual = {128, 64},
       .parts = {"q", "kv"},
       .shown = "{}"},
      {.name = "waves", .help = "of a workgroup", .high = kMaxWaves, .usual = {4}, .shown = "{} waves"},
      {.name = "pipeline",
       .help = "whether softmax and key loads hide behind matrix instructions: serial, overlapped, or a wave "
               "schedule (ping-pong, interleaved, specialised)",
       .kind = ValueKind::name,
       .usual = {static_cast<std::int64_t>(Pipeline::overlapped)},
       .names = kPipelineNames,
       .varied_names = kFreePipelines,
       .shown = "{}"},
      {.name = "kernel",
       .help =
           "kind of attention kernel: as the pipeline says, or with waves that multiply, apply softmax and "
           "read LDS in turn (as FlashAttention-2 on mma.sync)",
       .kind = ValueKind::name,
       .names = kAttendKernelNames,
       .shown = "{} kernel",
       .not_shown = 0},
  }};
  return knobs;
}

bool attend_tile_fits(const Values& values, const Gpu& gpu, DType dtype, std::int64_t depth) {
  try {
    attend_tile_resources(gpu, dtype, attend_tile_of(values, depth));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

void set_attend_tile(Values& values, std::int64_t queries, std::int64_t keys, std::int64_t waves) {
  values.assume("tile_q", queries);
  values.assume("tile_kv", keys);
  values.assume("waves", waves);
}

}  // namespace

const Spec& attend_knob(std::string_view name) {
  const Spec* found = find_spec(attend_knobs(), name);
  TRITAX_ASSERT(found != nullptr, "no such knob of attention");
  return *found;
}

MatmulTile attend_tile_of(const Values& values, std::int64_t depth) {
  const auto small = [&](std::string_view column) { return static_cast<std::int32_t>(values[column]); };
  const MatmulTile tile{small("tile_q"), small("tile_kv"), static_cast<std::int32_t>(depth), small("waves"),
                        static_cast<Pipeline>(values["pipeline"])};
  if (is_wave_schedule(tile.pipeline) && values["kernel"] != 0) {
    throw UserError(fmt::format("pipeline = {}: waves of kernel = {} do everything in turn; leave one out",
                                kPipelineNames[static_cast<std::size_t>(tile.pipeline)],
                                kAttendKernelNames[static_cast<std::size_t>(values["kernel"])]));
  }
  for (const std::int32_t edge : {tile.m, tile.n}) {
    if (edge % kTileStep == 0) continue;
    throw UserError(fmt::format("tile = {}x{}; sides are multiples of {}", tile.m, tile.n, kTileStep));
  }
  return tile;
}

KernelProfile attend_profile_of(const Values& values) {
  return values["kernel"] != 0 ? KernelProfile::mma_sync : KernelProfile::interpreter;
}

Resources attend_tile_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile) {
  return attend_resources(gpu, dtype, tile, gpu.async_tile_copy, "tile");
}

Kernel attend_tile_kernel(const Gpu& gpu, DType dtype, const MatmulTile& tile, KernelProfile profile,
                          int rank, std::string_view name) {
  Kernel kernel;
  kernel.profile = profile;
  kernel.name = std::string(name);
  kernel.rank = rank;
  kernel.resources = attend_tile_resources(gpu, dtype, tile);
  kernel.tile = tile;
  return kernel;
}

void assume_fitting_tile(Values& values, const Gpu& gpu, DType dtype, std::int64_t depth) {
  for (const std::int64_t queries : {128, 64, 32, 16}) {
    for (const std::int64_t keys : {64, 32, 16}) {
      set_attend_tile(values, queries, keys, queries >= 64 ? 4 : queries / 16);
      if (attend_tile_fits(values, gpu, dtype, depth)) return;
    }
  }
}

Axis attend_tile_axis(const Values& base, const Gpu& gpu, DType dtype, std::int64_t depth) {
  Axis tiles;
  tiles.name = "tile";
  tiles.travels = true;
  if (base.given("tile_q") || base.given("tile_kv") || base.given("waves")) return tiles;
  const auto add = [&](std::int64_t queries, std::int64_t keys, std::int64_t waves) {
    Values values = base;
    set_attend_tile(values, queries, keys, waves);
    if (!attend_tile_fits(values, gpu, dtype, depth)) return;
    tiles.coarse.push_back(tiles.values.size());
    tiles.values.push_back({{queries, keys, waves}, 0, [=](Values& into) {
                              set_attend_tile(into, queries, keys, waves);
                              return true;
                            }});
  };
  add(base["tile_q"], base["tile_kv"], base["waves"]);
  using Side = std::int64_t;
  for (const auto& [queries, waves] : {std::pair<Side, Side>{64, 4}, {128, 4}, {128, 8}, {256, 8}}) {
    for (const Side keys : {64, 128}) {
      const bool start = queries == base["tile_q"] && keys == base["tile_kv"] && waves == base["waves"];
      if (!start) add(queries, keys, waves);
    }
  }
  return tiles;
}

Spec attend_backward_knob(std::string_view name) {
  Spec spec = attend_knob(name);
  if (name == "tile") spec.help = "queries per step and keys per workgroup, for example 64x128";
  return spec;
}

double blocks_bound_ns(const Machine& machine, DType dtype, const Resources& resources, double block_ns,
                       double shared_speedup, double longest, double all) {
  const Gpu& gpu = machine.gpu;
  const double boost = std::max(1.0, gpu.boost_clock_ghz / gpu.rate(dtype).load_clock_ghz);
  const double units = gpu.cu_count() * shared_gain(shared_speedup, residents_at_most(gpu, resources));
  const double shared_boost = gpu.knows_energies() ? boost : std::cbrt(power_budget(gpu));
  return machine.host.launch_latency_ns + block_ns * std::max(longest / boost, all / (units * shared_boost));
}

double attend_bound_ns(const Machine& machine, DType dtype, const MatmulTile& tile, KernelProfile profile,
                       double longest, double all) {
  const Gpu& gpu = machine.gpu;
  const Resources resources = attend_tile_resources(gpu, dtype, tile);
  const KernelCosts costs = tritax::costs(machine, profile);
  const std::int32_t keys = costs.attend_block_keys > 0 ? costs.attend_block_keys : tile.n;
  const AttendCost block = attend_cost(gpu, costs, dtype, tile, resources, {tile.m, tile.k, keys, false});
  const double block_ns = block.cost.compute_ns * tile.n / keys / (1 + gpu.attend_spread);
  return blocks_bound_ns(machine, dtype, resources, block_ns, block.shared_speedup, longest, all);
}

}  // namespace tritax
