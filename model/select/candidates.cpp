#include "model/select/candidates.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "model/core/error.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/schedule/shader_engines.hpp"

namespace tritax {

namespace {

// Sides and depths that tile compilers (Triton, and with it Iris) can build: powers of two.
constexpr std::array<std::int32_t, 5> kTileSides{256, 128, 64, 32, 16};
constexpr std::int32_t kSmallestUsualSide = 64;
constexpr std::int32_t kSmallestPiece = 32;
constexpr std::array<std::int32_t, 9> kCommCus{8, 16, 24, 32, 40, 48, 64, 96, 128};
constexpr std::array<std::int32_t, 6> kGroups{6, 1, 2, 4, 8, 16};  // 6 is the default of ROCm/iris
constexpr std::array<CommPiece, 4> kPieces{{{1, 1}, {2, 1}, {4, 1}, {2, 2}}};

template <typename T>
void add_unique(std::vector<T>& values, const T& value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

std::int64_t largest_shard(const GemmAllScatter& workload) { return owned_columns(workload, 0).size(); }

// What a tile depth changes: the time of a tile, and how many workgroups a compute unit holds.
struct DepthEffect {
  double cached_ns = 0;  // with operands out of caches
  double memory_ns =
      0;  // with operands out of memory, which come no faster than its latency lets stages pass
  std::int32_t residents = 0;
  bool operator==(const DepthEffect&) const = default;
};

// Of one tile over the whole of K; nothing if it does not fit a compute unit.
std::optional<DepthEffect> effect_of(const Gpu& gpu, const GemmAllScatter& workload, const TileShape& shape,
                                     Pipeline pipeline) {
  const MatmulTile tile{shape.m, shape.n, shape.k, shape.waves, pipeline};
  Resources resources;
  try {
    resources = matmul_resources(gpu, workload.dtype, tile);
  } catch (const UserError&) {
    return std::nullopt;
  }
  const double residents = std::min(
      {static_cast<double>(gpu.simds_per_cu * gpu.waves_per_simd) / shape.waves,
       gpu.registers_per_cu / (static_cast<double>(resources.threads) * resources.registers_per_thread),
       gpu.lds_bytes_per_cu / resources.lds_bytes});
  const double cached_ns = matmul_cost(gpu, workload.dtype, tile, shape.m, shape.n, workload.k).compute_ns;
  const std::int32_t stages = operand_stages(gpu, workload.dtype, tile, resources.lds_bytes);
  const double steps = std::ceil(static_cast<double>(workload.k) / step_depth(gpu, workload.dtype, tile));
  const double arrives_ns =
      steps * stage_interval_ns(gpu, workload.dtype, tile, stages, gpu.memory_stage_latency_ns());
  return DepthEffect{cached_ns, std::max(cached_ns, arrives_ns), static_cast<std::int32_t>(residents)};
}

std::int64_t tiles_of_shard(const GemmAllScatter& workload, std::int32_t m, std::int32_t n) {
  return (workload.m + m - 1) / m * ((largest_shard(workload) + n - 1) / n);
}

// Sides worth trying for an extent: none above the (rounded) extent.
std::vector<std::int32_t> sides_for(std::int64_t extent, const std::optional<std::int32_t>& pin) {
  if (pin) return {*pin};
  const auto rounded = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)));
  std::vector<std::int32_t> sides;
  for (const std::int32_t side : kTileSides) {
    if (side <= std::max<std::int64_t>(rounded, kTileSides.back())) sides.push_back(side);
  }
  return sides;
}

// A side below the usual ones asks for more operands per product. It is worth that where the extent is no
// longer, or where neither the smallest usual tiles nor tiles twice as long give all compute units work.
bool is_worth_trying(const GemmAllScatter& workload, const Gpu& gpu, const KnobPins& pins, std::int32_t m,
                     std::int32_t n) {
  const auto leaves_idle = [&](std::int32_t tile_m, std::int32_t tile_n) {
    return tiles_of_shard(workload, tile_m, tile_n) < gpu.cu_count();
  };
  const bool usual_leave_idle = leaves_idle(kSmallestUsualSide, kSmallestUsualSide);
  const auto is_short = [](std::int32_t side, std::int64_t extent, const std::optional<std::int32_t>& pin) {
    return !pin && side < kSmallestUsualSide && side < extent;
  };
  if (is_short(m, workload.m, pins.tile_m) && !(usual_leave_idle && leaves_idle(2 * m, n))) return false;
  return !is_short(n, largest_shard(workload), pins.tile_n) || (usual_leave_idle && leaves_idle(m, 2 * n));
}

// Depths worth trying, the usual one first. Deeper ones end where one step is all of K.
std::vector<std::int32_t> depths_for(std::int64_t k, std::int32_t usual,
                                     const std::optional<std::int32_t>& pin) {
  if (pin) return {*pin};
  std::vector<std::int32_t> depths{usual, usual / 2};
  for (const std::int32_t factor : {2, 4}) {
    const bool one_step_before = usual * factor / 2 >= k;
    if (!one_step_before) depths.push_back(usual * factor);
  }
  return depths;
}

// Collects the tiles of a search, shape by shape.
class TileList {
 public:
  TileList(const GemmAllScatter& workload, const Gpu& gpu, const Knobs& base,
           std::vector<std::int32_t> depths)
      : workload_(workload), gpu_(gpu), base_(base), depths_(std::move(depths)) {}

  // The depths of m × n that differ in what they change; to `coarse` the first that fits, and the one whose
  // operands come soonest out of memory.
  void add(std::int32_t m, std::int32_t n) {
    std::vector<DepthEffect> effects;  // a depth that changes nothing need not be tried
    std::vector<TileShape> shapes;
    for (const std::int32_t k : depths_) {
      const TileShape tile{m, n, k, base_.waves};
      const auto effect = effect_of(gpu_, workload_, tile, base_.pipeline);
      if (!effect || std::find(effects.begin(), effects.end(), *effect) != effects.end()) continue;
      effects.push_back(*effect);
      shapes.push_back(tile);
      add_unique(tiles, tile);
    }
    if (shapes.empty()) return;
    const auto soonest = std::min_element(
        effects.begin(), effects.end(),
        [](const DepthEffect& a, const DepthEffect& b) { return a.memory_ns < b.memory_ns; });
    add_unique(coarse, shapes.front());
    add_unique(coarse, shapes[static_cast<std::size_t>(soonest - effects.begin())]);
  }

  std::vector<TileShape> tiles;
  std::vector<TileShape> coarse;

 private:
  const GemmAllScatter& workload_;
  const Gpu& gpu_;
  const Knobs& base_;
  std::vector<std::int32_t> depths_;
};

void set_tiles(KnobSpace& space, const GemmAllScatter& workload, const Machine& machine,
               const KnobPins& pins) {
  const Knobs& base = space.base;
  TileList list(workload, machine.gpu, base, depths_for(workload.k, base.tile_k, pins.tile_k));
  for (const std::int32_t m : sides_for(workload.m, pins.tile_m)) {
    for (const std::int32_t n : sides_for(largest_shard(workload), pins.tile_n)) {
      if (is_worth_trying(workload, machine.gpu, pins, m, n)) list.add(m, n);
    }
  }
  list.add(base.tile_m, base.tile_n);
  if (list.tiles.empty()) {
    // Nothing fits: let the law of resources say why, for the pinned values.
    matmul_resources(machine.gpu, workload.dtype,
                     {base.tile_m, base.tile_n, base.tile_k, base.waves, base.pipeline});
    throw UserError("no GEMM tile of the search fits a compute unit of " + machine.gpu.name +
                    "; pin tile_m, tile_n and tile_k to ones that do");
  }
  space.tiles = std::move(list.tiles);
  space.coarse_tiles = std::move(list.coarse);
}

CuSplit pinned_split(const KnobUse& uses, std::int32_t cus, const KnobPins& pins) {
  if (!uses.splits_cus) {
    return {uses.gemm_cus ? pins.gemm_cus.value_or(cus) : 0, uses.comm_cus ? pins.comm_cus.value_or(cus) : 0};
  }
  const std::int32_t comm = pins.comm_cus ? *pins.comm_cus : cus - *pins.gemm_cus;
  const std::int32_t gemm = pins.gemm_cus ? *pins.gemm_cus : cus - comm;
  if (gemm < 1 || comm < 1 || gemm + comm > cus) {
    throw UserError("gemm_cus, comm_cus: the split " + std::to_string(gemm) + " + " + std::to_string(comm) +
                    " is not possible; both must be at least 1 and together at most " + std::to_string(cus));
  }
  return {gemm, comm};
}

// Of a split of all compute units, one side of which is given, workgroups of a second kernel may wait for a
// compute unit. The split with the same given side of which none does; none if that is no other.
std::optional<CuSplit> split_beside(const KnobUse& uses, const Gpu& gpu, const CuSplit& all,
                                    bool comm_is_given) {
  if (!uses.in_two_kernels) return std::nullopt;
  const std::int32_t given = comm_is_given ? all.comm_cus : all.gemm_cus;
  const std::int32_t rest = comm_is_given ? all.gemm_cus : all.comm_cus;
  const std::int32_t beside = workgroups_beside(gpu, given);
  if (beside < 1 || beside >= rest) return std::nullopt;
  return comm_is_given ? CuSplit{beside, given} : CuSplit{given, beside};
}

void set_splits(KnobSpace& space, const KnobUse& uses, const GemmAllScatter& workload, const Machine& machine,
                const KnobPins& pins) {
  const std::int32_t cus = machine.gpu.cu_count();
  const auto try_beside = [&](const CuSplit& all, bool comm_is_given) {
    const std::optional<CuSplit> beside = split_beside(uses, machine.gpu, all, comm_is_given);
    if (beside) space.splits.push_back(*beside);
  };
  if (workload.gpus == 1 && uses.comm_cus) {  // nobody communicates
    space.default_split = {uses.gemm_cus ? pins.gemm_cus.value_or(cus) : 0, 0};
  } else if ((uses.gemm_cus && pins.gemm_cus) || (uses.comm_cus && pins.comm_cus)) {
    space.default_split = pinned_split(uses, cus, pins);
    const bool both = pins.gemm_cus && pins.comm_cus;
    if (uses.splits_cus && !both) try_beside(space.default_split, pins.comm_cus.has_value());
  } else if (uses.splits_cus) {
    const std::int32_t usual = default_comm_cus(cus);
    space.default_split = {cus - usual, usual};
    std::vector<std::int32_t> comm_cus(kCommCus.begin(), kCommCus.end());
    add_unique(comm_cus, usual);
    std::sort(comm_cus.begin(), comm_cus.end());
    for (const std::int32_t comm : comm_cus) {
      if (comm != usual && 2 * comm > cus) continue;
      const CuSplit all{cus - comm, comm};
      try_beside(all, true);
      space.splits.push_back(all);
    }
    return;
  } else {
    space.default_split = {uses.gemm_cus ? cus : 0, uses.comm_cus ? cus : 0};
    for (const std::int32_t comm : kCommCus) {
      if (uses.comm_cus && comm >= 32 && comm < cus)
        space.splits.push_back({space.default_split.gemm_cus, comm});
    }
  }
  space.splits.push_back(space.default_split);
}

void set_grid_orders(KnobSpace& space, const KnobUse& uses, const Machine& machine, const KnobPins& pins) {
  space.groups = {space.base.group_m};
  space.xcd_remaps = {space.base.xcd_remap};
  if (!uses.grid_order) return;
  if (!pins.group_m) space.groups.assign(kGroups.begin(), kGroups.end());
  if (machine.gpu.xcds == 1 && !pins.xcd_remap)
    space.xcd_remaps = {false};  // with one die it is the identity
  if (machine.gpu.xcds > 1 && !pins.xcd_remap) space.xcd_remaps = {true, false};
}

Knobs pinned_base(const Machine& machine, DType dtype, const KnobPins& pins) {
  Knobs base = default_knobs(machine, dtype);
  const auto take = [](auto& knob, const auto& pin) { knob = pin.value_or(knob); };
  take(base.tile_m, pins.tile_m);
  take(base.tile_n, pins.tile_n);
  take(base.tile_k, pins.tile_k);
  take(base.waves, pins.waves);
  // Patterns are compared, not the skill of kernel writers: all feed their matrix cores as well as the
  // vendor's kernel.
  base.pipeline = pins.pipeline.value_or(Pipeline::overlapped);
  take(base.comm_tile_m, pins.comm_tile_m);
  take(base.comm_tile_n, pins.comm_tile_n);
  take(base.group_m, pins.group_m);
  take(base.xcd_remap, pins.xcd_remap);
  take(base.peer_order, pins.peer_order);
  take(base.lock, pins.lock);
  take(base.launch, pins.launch);
  take(base.host_barriers, pins.host_barriers);
  return base;
}

struct Choice {
  TileShape tile;
  CuSplit split;
  CommPiece piece;
  std::int32_t group_m = 1;
  bool xcd_remap = false;
  PeerOrder peer_order = PeerOrder::fixed;
  LaunchMode launch = LaunchMode::stream;
};

// Knobs of a choice. Group heights that walk the tiles in the same order become one: none is higher than the
// grid, and a grid of one column has one order.
Knobs to_knobs(const KnobSpace& space, const GemmAllScatter& workload, const Choice& choice) {
  Knobs knobs = space.base;
  knobs.tile_m = choice.tile.m;
  knobs.tile_n = choice.tile.n;
  knobs.tile_k = choice.tile.k;
  knobs.waves = choice.tile.waves;
  knobs.gemm_cus = choice.split.gemm_cus;
  knobs.comm_cus = choice.split.comm_cus;
  if (!space.comm_tile_pinned && choice.piece != CommPiece{}) {
    knobs.comm_tile_m = choice.tile.m / choice.piece.rows;
    knobs.comm_tile_n = choice.tile.n / choice.piece.cols;
  }
  const std::int64_t rows = (workload.m + choice.tile.m - 1) / choice.tile.m;
  knobs.group_m = static_cast<std::int32_t>(std::min<std::int64_t>(choice.group_m, rows));
  if (space.groups.size() > 1 && largest_shard(workload) <= choice.tile.n) knobs.group_m = 1;
  knobs.xcd_remap = choice.xcd_remap;
  knobs.peer_order = choice.peer_order;
  knobs.launch = choice.launch;
  return knobs;
}

Choice default_choice(const KnobSpace& space) {
  const Knobs& base = space.base;
  Choice choice{{base.tile_m, base.tile_n, base.tile_k, base.waves},
                space.default_split,
                space.pieces.front(),
                space.groups.front(),
                space.xcd_remaps.front(),
                space.peer_orders.front(),
                space.launches.front()};
  const bool fits_as_is = std::find(space.tiles.begin(), space.tiles.end(), choice.tile) != space.tiles.end();
  if (!fits_as_is) choice.tile = space.tiles.front();
  return choice;
}

// The choice that `knobs` came from. Group heights that were cut are found by what they were cut to.
Choice to_choice(const KnobSpace& space, const GemmAllScatter& workload, const Knobs& knobs) {
  Choice choice = default_choice(space);
  choice.tile = {knobs.tile_m, knobs.tile_n, knobs.tile_k, knobs.waves};
  choice.split = {knobs.gemm_cus, knobs.comm_cus};
  choice.group_m = knobs.group_m;
  choice.xcd_remap = knobs.xcd_remap;
  choice.peer_order = knobs.peer_order;
  choice.launch = knobs.launch;
  for (const CommPiece& piece : space.pieces) {
    choice.piece = piece;
    if (to_knobs(space, workload, choice) == knobs) break;
  }
  return choice;
}

}  // namespace

KnobSpace knob_space(const Pattern& pattern, const GemmAllScatter& workload, const Machine& machine,
                     const KnobPins& pins) {
  const KnobUse& uses = pattern.uses;
  KnobSpace space;
  space.base = pinned_base(machine, workload.dtype, pins);
  space.comm_tile_pinned = pins.comm_tile_m || pins.comm_tile_n;
  if (uses.tile) {
    set_tiles(space, workload, machine, pins);
  } else {
    space.tiles = {{space.base.tile_m, space.base.tile_n, space.base.tile_k, space.base.waves}};
    space.coarse_tiles = space.tiles;
  }
  set_splits(space, uses, workload, machine, pins);
  space.pieces = {CommPiece{}};
  if (uses.comm_tile && !space.comm_tile_pinned && workload.gpus > 1) {
    space.pieces.assign(kPieces.begin(), kPieces.end());
  }
  set_grid_orders(space, uses, machine, pins);
  // The first one, which uses all links of a mesh at once, is tried with every tile and split.
  space.peer_orders = {PeerOrder::staggered, PeerOrder::fixed, PeerOrder::rotated};
  if (!uses.peer_order || workload.gpus == 1 || pins.peer_order) space.peer_orders = {space.base.peer_order};
  space.launches = {LaunchMode::stream, LaunchMode::graph};
  if (!uses.launch || pins.launch) space.launches = {space.base.launch};
  return space;
}

std::vector<Knobs> coarse_candidates(const KnobSpace& space, const GemmAllScatter& workload) {
  Choice choice = default_choice(space);
  std::vector<Knobs> candidates{to_knobs(space, workload, choice)};
  for (const TileShape& tile : space.coarse_tiles) {
    choice.tile = tile;
    for (const CuSplit& split : space.splits) {
      choice.split = split;
      add_unique(candidates, to_knobs(space, workload, choice));
    }
  }
  return candidates;
}

std::vector<Knobs> neighbours(const KnobSpace& space, const GemmAllScatter& workload, const Knobs& knobs) {
  const Choice present = to_choice(space, workload, knobs);
  std::vector<Knobs> found;
  const auto consider = [&](const Choice& choice) {
    const Knobs other = to_knobs(space, workload, choice);
    if (!(other == knobs)) add_unique(found, other);
  };
  for (const std::int32_t group : space.groups) {
    Choice choice = present;
    choice.group_m = group;
    consider(choice);
  }
  for (const bool remap : space.xcd_remaps) {
    Choice choice = present;
    choice.xcd_remap = remap;
    consider(choice);
  }
  for (const CommPiece& piece : space.pieces) {
    Choice choice = present;
    choice.piece = piece;
    if (knobs.tile_m / piece.rows >= kSmallestPiece && knobs.tile_n / piece.cols >= kSmallestPiece)
      consider(choice);
  }
  for (const PeerOrder peer_order : space.peer_orders) {
    Choice choice = present;
    choice.peer_order = peer_order;
    consider(choice);
  }
  for (const LaunchMode launch : space.launches) {
    Choice choice = present;
    choice.launch = launch;
    consider(choice);
  }
  for (const TileShape& tile : space.tiles) {
    if (tile.m != knobs.tile_m || tile.n != knobs.tile_n) continue;
    Choice choice = present;
    choice.tile = tile;
    consider(choice);
  }
  const auto here = std::find(space.splits.begin(), space.splits.end(), present.split);
  for (auto split = space.splits.begin(); split != space.splits.end(); ++split) {
    if (std::abs(std::distance(here, split)) > 1) continue;
    Choice choice = present;
    choice.split = *split;
    consider(choice);
  }
  return found;
}

std::optional<Knobs> with_tile_of(const KnobSpace& space, const GemmAllScatter& workload, const Knobs& knobs,
                                  const Knobs& other) {
  const TileShape tile{other.tile_m, other.tile_n, other.tile_k, other.waves};
  if (std::find(space.tiles.begin(), space.tiles.end(), tile) == space.tiles.end()) return std::nullopt;
  Choice choice = to_choice(space, workload, knobs);
  choice.tile = tile;
  if (tile.m / choice.piece.rows < kSmallestPiece || tile.n / choice.piece.cols < kSmallestPiece) {
    choice.piece = space.pieces.front();
  }
  if (space.groups.size() > 1) choice.group_m = other.group_m;
  if (space.xcd_remaps.size() > 1) choice.xcd_remap = other.xcd_remap;
  return to_knobs(space, workload, choice);
}

}  // namespace tritax
