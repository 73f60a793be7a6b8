#include "model/parts/gemm_knobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 16;  // compute units, row tiles of a group
constexpr std::string_view kAllowedWaves = "1, 2, 4, 8 or 16";

// In the order in which tables show them.
constexpr std::array<Spec, 13> kGemmKnobs{{
    {.name = "tile",
     .help = "GEMM tile of a workgroup, for example 256x256x64",
     .low = kTileStep,
     .high = kMaxGemmTile,
     .usual = {256, 256, 64},
     .parts = {"m", "n", "k"},
     .step = kTileStep,
     .varies_by_doubling = true,
     .shown = "{}"},
    {.name = "waves",
     .help = "waves of a GEMM workgroup",
     .high = kMaxWaves,
     .usual = {8},
     .allowed = kAllowedWaves,
     .varies_by_doubling = true,
     .shown = "{} waves",
     .not_shown = 8},
    {.name = "pipeline",
     .help = "how a workgroup feeds its matrix cores: serial (as Triton), overlapped (as vendor kernels), or "
             "a wave schedule (ping-pong, interleaved, specialised)",
     .kind = ValueKind::name,
     .usual = {static_cast<std::int64_t>(Pipeline::overlapped)},
     .names = kPipelineNames,
     .varied_names = kFreePipelines,
     .shown = "{} pipeline",
     .not_shown = static_cast<std::int64_t>(Pipeline::overlapped)},
    {.name = "comm_tile",
     .help = "tile of a communication step, for example 64x256 (default: the GEMM tile)",
     .low = kTileStep,
     .high = kMaxCommTile,
     .parts = {"m", "n"},
     .step = kTileStep,
     .varies_by_doubling = true,
     .shown = "comm tile {}",
     .not_shown = 0},
    {.name = "gemm_cus",
     .help = "workgroups that compute (default: all that the pattern can use)",
     .high = kMaxCount,
     .allowed = kAllowedCus,
     .shown = "{} gemm CUs",
     .not_shown = 0},
    {.name = "comm_cus",
     .help = "workgroups that communicate (default: by pattern)",
     .high = kMaxCount,
     .allowed = kAllowedCus,
     .shown = "{} comm CUs",
     .not_shown = 0},
    {.name = "group_m",
     .help = "row tiles per group in the grid order",
     .high = kMaxCount,
     .usual = {6},
     .shown = "group-M {}"},
    {.name = "xcd_remap",
     .help = "each XCD gets a contiguous range of tiles",
     .kind = ValueKind::boolean,
     .usual = {1},
     .shown = "no XCD remap",
     .not_shown = 1},
    {.name = "xcd_chunk",
     .help = "tiles per chunk that XCDs get in turn (default: one chunk per XCD)",
     .high = kMaxCount,
     .varies_by_doubling = true,
     .shown = "XCD chunks of {}",
     .not_shown = 0},
    {.name = "peer_order",
     .help = "order of peers: rank 0, 1, … (fixed), own rank + 1, … (rotated), or rotated by one more per "
             "workgroup (staggered)",
     .kind = ValueKind::name,
     .usual = {static_cast<std::int64_t>(PeerOrder::staggered)},
     .names = kPeerOrderNames,
     .shown = "{} peers",
     .what_if =
         WhatIf{static_cast<std::int64_t>(PeerOrder::staggered), static_cast<std::int64_t>(PeerOrder::fixed),
                "Its workgroups start at different peers, so they do not all wait for one link; with peers "
                "in rank order it would take {}."}},
    {.name = "lock",
     .help = "how flags are set and polled",
     .kind = ValueKind::name,
     .names = kLockProtocolNames,
     .shown = "{}",
     .not_shown = static_cast<std::int64_t>(LockProtocol::load_store)},
    {.name = "launch",
     .help = "kernel launches: one by one (stream) or in one call (graph)",
     .kind = ValueKind::name,
     .names = kLaunchModeNames,
     .shown = "{} launch",
     .not_shown = static_cast<std::int64_t>(LaunchMode::stream)},
    {.name = "host_barriers",
     .help =
         "host barriers before and after the measured region, as in the harness of ROCm/iris; accounted as "
         "harness",
     .kind = ValueKind::boolean,
     .of_every_run = true,
     .value_if_column_missing = 1},
}};

// Calls `visit(column, member)` for every member of GemmKnobs.
template <typename Knobs, typename Visit>
void for_each_member(Knobs& knobs, const Visit& visit) {
  visit("tile_m", knobs.tile_m);
  visit("tile_n", knobs.tile_n);
  visit("tile_k", knobs.tile_k);
  visit("waves", knobs.waves);
  visit("pipeline", knobs.pipeline);
  visit("comm_tile_m", knobs.comm_tile_m);
  visit("comm_tile_n", knobs.comm_tile_n);
  visit("gemm_cus", knobs.gemm_cus);
  visit("comm_cus", knobs.comm_cus);
  visit("group_m", knobs.group_m);
  visit("xcd_remap", knobs.xcd_remap);
  visit("xcd_chunk", knobs.xcd_chunk);
  visit("peer_order", knobs.peer_order);
  visit("lock", knobs.lock);
  visit("launch", knobs.launch);
  visit("host_barriers", knobs.host_barriers);
}

void require_tile(std::int32_t value, const char* knob, std::int32_t largest) {
  if (value < kTileStep || value > largest || value % kTileStep != 0) {
    throw UserError(fmt::format("{}: {} is not allowed; it must be a multiple of {} up to {}", knob, value,
                                kTileStep, largest));
  }
}

bool fits(const Machine& machine, DType dtype, const MatmulTile& tile) {
  try {
    matmul_resources(machine.gpu, machine.interpreter, dtype, tile);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

void check_cus(std::int64_t value, const char* knob, const Gpu& gpu) {
  if (value < 0 || value > gpu.cu_count()) {
    throw UserError(
        fmt::format("{}: {} is not allowed; give 1 to {}, the compute units of {}, or leave it out", knob,
                    value, gpu.cu_count(), gpu.name));
  }
}

const Spec& gemm_knob(std::string_view name) {
  const Spec* found = find_spec(kGemmKnobs, name);
  TRITAX_ASSERT(found != nullptr, "no such knob of GEMM kernels");
  return *found;
}

GemmKnobs gemm_knobs_of(const Values& values) {
  GemmKnobs knobs;
  for_each_member(knobs, [&](const char* column, auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    member = static_cast<Member>(values.get_or(column, static_cast<std::int64_t>(member)));
  });
  return knobs;
}

void assume(Values& values, const GemmKnobs& knobs) {
  for_each_member(knobs, [&](const char* column, const auto& member) {
    if (values.has(column)) values.assume(column, static_cast<std::int64_t>(member));
  });
}

void give(Values& values, const GemmKnobs& knobs) {
  for_each_member(knobs, [&](const char* column, const auto& member) {
    if (values.has(column)) values.give(column, static_cast<std::int64_t>(member));
  });
}

Values with_tile(Values knobs, const MatmulTile& tile) {
  knobs.assume("tile_m", tile.m);
  knobs.assume("tile_n", tile.n);
  knobs.assume("tile_k", tile.k);
  knobs.assume("waves", tile.waves);
  knobs.assume("pipeline", static_cast<std::int64_t>(tile.pipeline));
  return knobs;
}

GemmKnobs default_gemm_knobs(const Machine& machine, DType dtype) {
  const Gpu& gpu = machine.gpu;
  GemmKnobs knobs;
  knobs.pipeline = Pipeline::overlapped;
  knobs.peer_order = PeerOrder::staggered;
  knobs.host_barriers = false;
  knobs.tile_k = 128 / bytes_of(dtype);
  if (gpu.async_tile_copy) knobs.tile_m = 128;
  const auto may_halve = [](std::int32_t side) { return side > 2 * kTileStep; };
  while (!fits(machine, dtype, matmul_tile(knobs)) && may_halve(knobs.tile_n)) {
    (knobs.tile_n >= knobs.tile_m ? knobs.tile_n : knobs.tile_m) /= 2;
  }
  return knobs;
}

void check(const GemmKnobs& knobs, const Gpu& gpu) {
  require_tile(knobs.tile_m, "tile_m", kMaxGemmTile);
  require_tile(knobs.tile_n, "tile_n", kMaxGemmTile);
  require_tile(knobs.tile_k, "tile_k", kMaxGemmTile);
  if (knobs.comm_tile_m != 0) require_tile(knobs.comm_tile_m, "comm_tile_m", kMaxCommTile);
  if (knobs.comm_tile_n != 0) require_tile(knobs.comm_tile_n, "comm_tile_n", kMaxCommTile);
  check_cus(knobs.gemm_cus, "gemm_cus", gpu);
  check_cus(knobs.comm_cus, "comm_cus", gpu);
  if (knobs.waves < 1 || knobs.waves > kMaxWaves || (knobs.waves & (knobs.waves - 1)) != 0) {
    throw UserError(fmt::format("waves: {} is not allowed; it must be {}", knobs.waves, kAllowedWaves));
  }
  if (knobs.group_m < 1) {
    throw UserError(fmt::format("group_m: {} is not allowed; it must be at least 1", knobs.group_m));
  }
  if (knobs.xcd_chunk < 0) {
    throw UserError(fmt::format("xcd_chunk: {} is not allowed; it must be at least 1", knobs.xcd_chunk));
  }
  if (knobs.xcd_chunk > 0 && !knobs.xcd_remap) {
    throw UserError(fmt::format("xcd_chunk: {} has no effect without xcd_remap; leave one of the two out",
                                knobs.xcd_chunk));
  }
}

std::int32_t default_comm_cus(std::int32_t cus) {
  const auto power = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(cus)));
  return power < cus ? cus - power : std::max(1, cus / 8);
}

MatmulTile matmul_tile(const GemmKnobs& knobs) {
  return {knobs.tile_m, knobs.tile_n, knobs.tile_k, knobs.waves, knobs.pipeline};
}

}  // namespace tritax
