#include "model/select/closed_form.hpp"

#include <algorithm>
#include <cmath>

#include "model/cost/matmul_cost.hpp"
#include "model/cost/matmul_step.hpp"

namespace tritax {

namespace {

double whole_part(double a, double b) { return std::ceil(a / b - 1e-9); }

}  // namespace

Element element_of(const Gpu& gpu, DType dtype) {
  const int sum_bytes = bytes_of(accumulator_of(dtype));
  return {name_of(dtype), bytes_of(dtype), sum_bytes, gpu.rate(dtype), dtype};
}

ClosedForm::ClosedForm(const Machine& machine, const Element& element, const MatmulTile& tile, int occupancy,
                       std::int32_t group_m)
    : gpu_(machine.gpu),
      costs_(machine.interpreter),
      element_(element),
      tile_(tile),
      occupancy_(occupancy),
      group_m_(std::max(1, group_m)) {
  const double e = element.bytes;
  depth_ = step_depth(gpu_, costs_, element.dtype, tile);
  MatmulTile step = tile;
  step.k = depth_;
  compute_ns_ = matmul_step_clk(gpu_, costs_, element.rate, e, step) / element.rate.load_clock_ghz;
  stages_ = std::max(2, operand_stages(gpu_, costs_, element.dtype, tile, 0));
  start_ns_ = costs_.cold_start_ns + costs_.cold_code_ns + gpu_.dispatch_latency_ns +
              gpu_.workgroup_dispatch_ns * gpu_.cus_per_xcd;
  gap_ns_ = kernel_gap_ns(machine.host, costs_);
}

ClosedForm::Grid ClosedForm::grid_of(const GemmSize& size) const {
  Grid grid;
  grid.rows = (size.m + tile_.m - 1) / tile_.m;
  grid.columns = (size.n + tile_.n - 1) / tile_.n;
  grid.tile_rows = static_cast<double>(size.m) / static_cast<double>(grid.rows);
  grid.tile_columns = static_cast<double>(size.n) / static_cast<double>(grid.columns);
  grid.operand_bytes = static_cast<double>(size.m + size.n) * static_cast<double>(size.k) * element_.bytes;
  return grid;
}

// Hits of `workgroups` neighbours in the grid order, at the same depth of K.
double ClosedForm::hits(const Grid& grid, double workgroups) const {
  const double rows = std::min({static_cast<double>(group_m_), static_cast<double>(grid.rows), workgroups});
  double across = whole_part(workgroups, rows);
  double down = rows;
  if (across > static_cast<double>(grid.columns)) {
    across = static_cast<double>(grid.columns);
    down = std::min(static_cast<double>(grid.rows), whole_part(workgroups, across));
  }
  const double fetched = down * grid.tile_rows + across * grid.tile_columns;
  return std::max(0.0, 1 - fetched / (workgroups * (grid.tile_rows + grid.tile_columns)));
}

double ClosedForm::steps_of(double iterations) const { return whole_part(iterations * tile_.k, depth_); }

// A step of `workgroups` workgroups, each on its own unit.
double ClosedForm::at_once_ns(const Grid& grid, double workgroups, double l2_hits, double llc_hits) const {
  const double bytes = workgroups * (grid.tile_rows + grid.tile_columns) * depth_ * element_.bytes;
  const double missed = bytes * (1 - l2_hits);
  const double busy_dies = std::min(1.0, workgroups / gpu_.xcds);
  double longest = std::max(compute_ns_, bytes / (l2_gb_per_s(gpu_, costs_) * gpu_.xcds * busy_dies));
  if (gpu_.llc_gb_per_s > 0) longest = std::max(longest, missed / gpu_.llc_gb_per_s);
  longest = std::max(longest, missed * (1 - llc_hits) / gpu_.hbm_gb_per_s);
  const double latency_ns = l2_hits * gpu_.l2_latency_ns + (1 - l2_hits) * gpu_.memory_stage_latency_ns();
  return std::max(longest, latency_ns / (stages_ - 1));
}

double ClosedForm::store_ns(const Grid& grid, double workgroups, double bytes) const {
  const double tile_bytes = grid.tile_rows * grid.tile_columns * bytes;
  return costs_.store_op_ns +
         std::max(tile_bytes / gpu_.cu_store_gb_per_s, workgroups * tile_bytes / gpu_.hbm_gb_per_s);
}

double ClosedForm::partial_ns() const {
  const double bytes = static_cast<double>(tile_.m) * tile_.n * element_.sum_bytes;
  return costs_.store_op_ns + bytes / gpu_.cu_store_gb_per_s + gpu_.release_ns;
}

double ClosedForm::peer_ns() const {
  const double bytes = static_cast<double>(tile_.m) * tile_.n * element_.sum_bytes;
  const double adding_ns = costs_.accumulate_gb_per_s > 0 ? bytes / costs_.accumulate_gb_per_s : 0;
  return gpu_.poll_load_ns + gpu_.l2_latency_ns + costs_.copy_op_ns + bytes / gpu_.cu_load_gb_per_s +
         adding_ns;
}

double ClosedForm::shared_ns(const Grid& grid, const Decomposition& split) const {
  if (split.sharers == 0) return 0;
  const double share = static_cast<double>(split.share() + (split.longer_shares() > 0 ? 1 : 0));
  const double depth = static_cast<double>(split.gemm.iterations);
  const double at_once = std::min<double>(static_cast<double>(split.sharers), gpu_.cu_count());
  const double rounds = whole_part(static_cast<double>(split.sharers), gpu_.cu_count());
  const bool aligned = split.regions() == split.split_tiles;
  // Parts of one tile share no operands; parts of neighbouring tiles at the same depth do.
  const double peers =
      std::max(1.0, static_cast<double>(split.sharers) / static_cast<double>(split.split_tiles));
  const double side_by_side = std::max(1.0, at_once / peers);
  double l2_hits = hits(grid, std::max(1.0, side_by_side / gpu_.xcds));
  double llc_hits = 0;
  if (gpu_.xcds > 1) llc_hits = 1 - (1 - hits(grid, side_by_side)) / std::max(1e-9, 1 - l2_hits);
  if (!aligned) {
    const double held = gpu_.l2_bytes * gpu_.xcds * static_cast<double>(split.gemm.tiles) /
                        (grid.operand_bytes * static_cast<double>(split.split_tiles));
    l2_hits *= std::min(1.0, held);
  }
  const double parts = aligned ? 1 : std::floor(share / depth) + 1;
  const double owned = aligned ? 1 : std::max(1.0, std::floor(share / depth));
  const double prologue_ns = gpu_.hbm_latency_ns + costs_.matmul_op_ns;
  double time = steps_of(share) * at_once_ns(grid, at_once, l2_hits, std::clamp(llc_hits, 0.0, 1.0));
  time += parts * prologue_ns + owned * store_ns(grid, at_once / peers, element_.bytes);
  const double helpers = whole_part(depth, share) - 1;  // per tile, besides its owner
  const bool cut = aligned ? helpers > 0
                           : split.gemm.iterations * split.split_tiles % split.sharers != 0 ||
                                 split.share() % split.gemm.iterations != 0;
  if (cut) {
    time += partial_ns() + std::max(1.0, helpers) * peer_ns();
    if (share < depth) time += gpu_.flag_same_die_ns;
  }
  return rounds * time;
}

double ClosedForm::whole_ns(const Grid& grid, const Decomposition& split) const {
  const std::int64_t tiles = split.whole_tiles();
  if (tiles == 0) return 0;
  const std::int64_t units = gpu_.cu_count();
  const double steps = steps_of(static_cast<double>(split.gemm.iterations));
  const double requested = static_cast<double>(split.gemm.tiles) * (grid.tile_rows + grid.tile_columns);
  const double least = grid.operand_bytes <= gpu_.l2_bytes
                           ? 1 - (static_cast<double>(grid.rows) * grid.tile_rows +
                                  static_cast<double>(grid.columns) * grid.tile_columns) /
                                     requested
                           : 0;
  const auto round_ns = [&](std::int64_t workgroups) {
    const auto w = static_cast<double>(workgroups);
    const double l2_hits = std::max(hits(grid, std::max(1.0, w / gpu_.xcds)), gpu_.xcds == 1 ? least : 0.0);
    const double llc_hits =
        gpu_.xcds > 1 ? std::clamp(1 - (1 - hits(grid, w)) / std::max(1e-9, 1 - l2_hits), 0.0, 1.0) : 0;
    return steps * at_once_ns(grid, w, l2_hits, llc_hits);
  };
  const std::int64_t full = tiles / units;
  const std::int64_t rest = tiles % units;
  double time = 0;
  if (full > 0) time += static_cast<double>(full) * round_ns(units);
  if (rest > 0) time += round_ns(rest);
  const double beside_ns = gpu_.hbm_latency_ns + costs_.matmul_op_ns +
                           store_ns(grid, static_cast<double>(std::min(tiles, units)), element_.bytes);
  const auto rounds = static_cast<double>(full + (rest > 0 ? 1 : 0));
  return time + beside_ns * (1 + (rounds - 1) / occupancy_);
}

double ClosedForm::kernel_ns(const GemmSize& size, const Decomposition& split) const {
  const Grid grid = grid_of(size);
  return start_ns_ + shared_ns(grid, split) + whole_ns(grid, split);
}

GridModel ClosedForm::grid_model() const {
  GridModel model;
  model.a = start_ns_ + gpu_.hbm_latency_ns + costs_.matmul_op_ns +
            static_cast<double>(tile_.m) * tile_.n * element_.bytes / gpu_.cu_store_gb_per_s;
  model.b = partial_ns() + gpu_.flag_same_die_ns;
  model.c = iteration_ns();
  model.d = peer_ns();
  return model;
}

Decomposition ClosedForm::stream_k(const GemmSize& size) const {
  const TiledGemm gemm = tiled(size);
  const std::int64_t units = gpu_.cu_count();
  if (gemm.tiles >= units) return two_tile_stream_k(gemm, units);
  const std::int64_t most = std::min(units, gemm.total());
  return tritax::stream_k(gemm, best_grid(grid_model(), gemm.tiles, gemm.iterations, most));
}

}  // namespace tritax
