#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "model/core/error.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/parts/gemm_question.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

// Sides and depths that tile compilers (Triton, and so Iris) can build: powers of two.
constexpr std::array<std::int32_t, 5> kTileSides{256, 128, 64, 32, 16};
constexpr std::int32_t kSmallestUsualSide = 64;
constexpr std::int32_t kSmallestUnlikelySide = 32;  // tried only at the end
constexpr std::array<std::int32_t, 5> kWaves{8, 4, 2, 1, 16};

struct TileShape {
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  std::int32_t waves = 0;
  friend bool operator==(const TileShape&, const TileShape&) = default;
};

// Effects of a tile depth: the time of a tile, and the number of workgroups per compute unit.
struct DepthEffect {
  double cached_ns = 0;  // with operands from caches
  double memory_ns =
      0;  // with operands out of memory, which come no faster than its latency lets stages pass
  std::int32_t residents = 0;
  bool operator==(const DepthEffect&) const = default;
};

// Effect of one tile over the whole of K; none if the tile does not fit a compute unit.
std::optional<DepthEffect> effect_of(const Machine& machine, const GemmShape& gemm, const TileShape& shape,
                                     Pipeline pipeline) {
  const MatmulTile tile{shape.m, shape.n, shape.k, shape.waves, pipeline};
  const Gpu& gpu = machine.gpu;
  const KernelCosts& costs = machine.interpreter;
  Resources resources;
  try {
    resources = matmul_resources(gpu, costs, gemm.dtype, tile);
  } catch (const UserError&) {
    return std::nullopt;
  }
  const double residents = std::min(
      {static_cast<double>(gpu.simds_per_cu * gpu.waves_per_simd) / shape.waves,
       gpu.registers_per_cu / (static_cast<double>(resources.threads) * resources.registers_per_thread),
       gpu.lds_bytes_per_cu / resources.lds_bytes});
  const double cached_ns = matmul_cost(gpu, costs, gemm.dtype, tile, shape.m, shape.n, gemm.k).compute_ns;
  const std::int32_t stages = operand_stages(gpu, costs, gemm.dtype, tile, resources.lds_bytes);
  const double steps = std::ceil(static_cast<double>(gemm.k) / step_depth(gpu, costs, gemm.dtype, tile));
  const double arrives_ns =
      steps * stage_interval_ns(gpu, gemm.dtype, tile, stages, gpu.memory_stage_latency_ns());
  return DepthEffect{cached_ns, std::max(cached_ns, arrives_ns), static_cast<std::int32_t>(residents)};
}

std::int64_t tiles_of_shard(const GemmShape& gemm, std::int32_t m, std::int32_t n) {
  return (gemm.m + m - 1) / m * ((gemm.n + n - 1) / n);
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

// A side below the usual ones asks for more operands per product. Such a side is worth trying where the
// extent is no longer, or where neither the smallest usual tiles nor tiles twice as long fill all compute
// units.
bool is_worth_trying(const GemmQuestion& question, std::int32_t m, std::int32_t n) {
  const GemmShape& gemm = question.gemm;
  const auto leaves_idle = [&](std::int32_t tile_m, std::int32_t tile_n) {
    return tiles_of_shard(gemm, tile_m, tile_n) < question.machine.gpu.cu_count();
  };
  const bool usual_leave_idle = leaves_idle(kSmallestUsualSide, kSmallestUsualSide);
  const auto is_short = [](std::int32_t side, std::int64_t extent, const std::optional<std::int32_t>& pin) {
    return !pin && side < kSmallestUsualSide && side < extent;
  };
  if (is_short(m, gemm.m, question.pin("tile_m")) && !(usual_leave_idle && leaves_idle(2 * m, n)))
    return false;
  return !is_short(n, gemm.n, question.pin("tile_n")) || (usual_leave_idle && leaves_idle(m, 2 * n));
}

// Depths worth trying, the usual one first, up to the depth at which one step is all of K.
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

// Numbers of waves worth trying, the usual one first.
std::vector<std::int32_t> waves_for(const GemmQuestion& question) {
  if (question.pin("waves") || !question.pattern.uses("waves")) return {question.base.waves};
  std::vector<std::int32_t> waves{question.base.waves};
  for (const std::int32_t count : kWaves) add_unique(waves, count);
  return waves;
}

// List of the tiles of a search, shape by shape.
class TileList {
 public:
  TileList(const GemmQuestion& question, std::vector<std::int32_t> depths, std::vector<std::int32_t> waves)
      : question_(question), depths_(std::move(depths)), waves_(std::move(waves)) {}

  // Adds the waves of m × n, and for each the depths with different effects. Adds to `coarse` the first tile
  // that fits, the tile with the soonest operands from memory, and the tile that multiplies fastest.
  void add(std::int32_t m, std::int32_t n, bool at_first = true) {
    const GemmKnobs& base = question_.base;
    std::vector<DepthEffect> effects;
    std::vector<TileShape> shapes;
    for (const std::int32_t waves : waves_) {
      const std::size_t first = effects.size();
      for (const std::int32_t k : depths_) {
        const TileShape tile{m, n, k, waves};
        const auto effect = effect_of(question_.machine, question_.gemm, tile, base.pipeline);
        const auto own = effects.begin() + static_cast<std::ptrdiff_t>(first);
        // Skips a depth without an effect of its own.
        if (!effect || std::find(own, effects.end(), *effect) != effects.end()) continue;
        effects.push_back(*effect);
        shapes.push_back(tile);
        add_unique(tiles, tile);
      }
    }
    if (shapes.empty() || !at_first) return;
    const auto add_least = [&](double DepthEffect::*time_ns) {
      const auto least = std::min_element(
          effects.begin(), effects.end(),
          [&](const DepthEffect& a, const DepthEffect& b) { return a.*time_ns < b.*time_ns; });
      add_unique(coarse, shapes[static_cast<std::size_t>(least - effects.begin())]);
    };
    add_unique(coarse, shapes.front());
    add_least(&DepthEffect::memory_ns);
    add_least(&DepthEffect::cached_ns);
  }

  std::vector<TileShape> tiles;
  std::vector<TileShape>
      coarse;  // of every m × n the usual one, and the best out of memory and out of caches

 private:
  const GemmQuestion& question_;
  std::vector<std::int32_t> depths_;
  std::vector<std::int32_t> waves_;
};

TileList tiles_to_try(const GemmQuestion& question) {
  const GemmKnobs& base = question.base;
  if (!question.pattern.uses("tile")) {
    TileList one(question, {}, {});
    one.tiles = one.coarse = {{base.tile_m, base.tile_n, base.tile_k, base.waves}};
    return one;
  }
  const GemmShape& gemm = question.gemm;
  TileList list(question, depths_for(gemm.k, base.tile_k, question.pin("tile_k")), waves_for(question));
  for (const std::int32_t m : sides_for(gemm.m, question.pin("tile_m"))) {
    for (const std::int32_t n : sides_for(gemm.n, question.pin("tile_n"))) {
      const bool at_first = is_worth_trying(question, m, n);
      if (at_first || std::min(m, n) >= kSmallestUnlikelySide) list.add(m, n, at_first);
    }
  }
  list.add(base.tile_m, base.tile_n);
  if (!list.tiles.empty()) return list;
  // Nothing fits: matmul_resources() throws with the reason, for the pinned values.
  const Gpu& gpu = question.machine.gpu;
  matmul_resources(gpu, question.machine.interpreter, gemm.dtype, matmul_tile(base));
  throw UserError("no GEMM tile of the search fits a compute unit of " + gpu.name +
                  "; pin tile_m, tile_n and tile_k to ones that do");
}

// The default side, halved as long as half of it still covers the extent.
std::int32_t fitted(std::int32_t side, std::int64_t extent, const std::optional<std::int32_t>& pin) {
  if (pin) return side;
  while (side / 2 >= kTileSides.back() && side / 2 >= extent) side /= 2;
  return side;
}

// Start of a search: the default tile, as high and wide as the problem needs at most.
TileShape start_of(const GemmQuestion& question, const TileList& list) {
  const GemmKnobs& base = question.base;
  const TileShape usual{base.tile_m, base.tile_n, base.tile_k, base.waves};
  if (!question.pattern.uses("tile")) return usual;
  const std::int32_t m = fitted(base.tile_m, question.gemm.m, question.pin("tile_m"));
  const std::int32_t n = fitted(base.tile_n, question.gemm.n, question.pin("tile_n"));
  if (m == usual.m && n == usual.n) return usual;
  const auto fits = std::find_if(list.tiles.begin(), list.tiles.end(),
                                 [&](const TileShape& tile) { return tile.m == m && tile.n == n; });
  return fits == list.tiles.end() ? usual : *fits;
}

}  // namespace

Axis tile_axis(const GemmQuestion& question) {
  const TileList list = tiles_to_try(question);
  const TileShape start = start_of(question, list);
  Axis axis;
  axis.name = "tile";
  axis.near = Axis::Near::grouped;
  axis.travels = axis.must_travel = true;
  for (const TileShape& tile : list.tiles) {
    axis.values.push_back(
        {{tile.m, tile.n, tile.k, tile.waves}, tile.m * (kMaxGemmTile + 1) + tile.n, [tile](Values& knobs) {
           knobs.assume("tile_m", tile.m);
           knobs.assume("tile_n", tile.n);
           knobs.assume("tile_k", tile.k);
           knobs.assume("waves", tile.waves);
           return true;
         }});
    if (tile == start) axis.start = axis.values.size() - 1;
  }
  for (const TileShape& tile : list.coarse) {
    const auto place = std::find(list.tiles.begin(), list.tiles.end(), tile);
    axis.coarse.push_back(static_cast<std::size_t>(place - list.tiles.begin()));
  }
  return axis;
}

}  // namespace tritax
