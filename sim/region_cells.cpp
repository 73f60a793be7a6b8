#include "sim/region_cells.hpp"

#include "model/schedule/items.hpp"

namespace tritax {

RegionCells::RegionCells(const std::vector<Buffer>& buffers) {
  for (const Buffer& buffer : buffers) {
    seen_.push_back({.rows = buffer.rows,
                     .cols = buffer.cols,
                     .tile_rows = std::max(1, buffer.tile_rows),
                     .tile_cols = std::max(1, buffer.tile_cols)});
  }
}

void RegionCells::Axis::finish() {
  cell_at_.front() = cell_at_.back() = 1;
  for (std::size_t at = 0; at < cell_at_.size(); ++at) {
    if (cell_at_[at] != 0) cuts_.push_back(static_cast<std::int32_t>(at));
    cell_at_[at] = static_cast<std::uint32_t>(cuts_.size()) - 1;
  }
}

// Calls `visit(region)` for every use of a buffer that may have cells.
template <typename Visit>
void RegionCells::for_each_use(const Schedule& schedule, const Visit& visit) const {
  for (const Kernel& kernel : schedule.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      for (const Op& op : ops_of(schedule, program_of(kernel, p))) {
        for_each_own_use(op, kernel.rank, [&](const Region& use, bool) {
          if (has(use.buffer)) visit(use);
        });
      }
    }
  }
}

void RegionCells::finish(const Schedule& schedule, std::int32_t ranks) {
  const auto may_need = [](const Seen& seen) { return seen.is_read && seen.by_parts; };
  if (std::none_of(seen_.begin(), seen_.end(), may_need)) return;
  for (const Seen& seen : seen_) has_.push_back(may_need(seen) ? 1 : 0);
  grids_.resize(static_cast<std::size_t>(ranks) * seen_.size());
  cut(schedule, ranks);
  drop_too_fine();
  keep_what_needs_them(schedule);
  drop_too_fine();
  if (std::find(has_.begin(), has_.end(), 1) != has_.end()) return;
  has_.clear();
  grids_.clear();
}

void RegionCells::cut(const Schedule& schedule, std::int32_t ranks) {
  const auto cut = [&](std::int32_t rank, std::int32_t buffer, const Rect& rect) {
    Grid& grid = grids_[slot_of(rank, buffer)];
    if (!grid.any()) {
      const Seen& seen = seen_[static_cast<std::size_t>(buffer)];
      grid.rows.begin(seen.rows);
      grid.cols.begin(seen.cols);
      grid.element_bytes = bytes_of(schedule.buffers[static_cast<std::size_t>(buffer)].dtype);
    }
    ++grid.uses;
    grid.rows.cut(rect.row);
    grid.rows.cut(rect.row + rect.rows);
    grid.cols.cut(rect.col);
    grid.cols.cut(rect.col + rect.cols);
  };
  for_each_use(schedule, [&](const Region& use) { cut(use.rank, use.buffer, use.rect); });
  for (const Op& op : schedule.transfers) {
    if (has(op.buffer)) cut(op.rank % ranks, op.buffer, op.rect);
  }
  for (Grid& grid : grids_) {
    if (!grid.any()) continue;
    grid.rows.finish();
    grid.cols.finish();
  }
}

bool RegionCells::Grid::has_too_many() const {
  constexpr double kMostByUse = 64, kAlways = 4096;
  const double cells = static_cast<double>(rows.count()) * static_cast<double>(cols.count());
  return std::max(cells, cells_used) > kMostByUse * uses + kAlways;
}

void RegionCells::drop_too_fine() {
  for (std::size_t slot = 0; slot < grids_.size(); ++slot) {
    if (grids_[slot].any() && grids_[slot].has_too_many()) has_[slot % has_.size()] = 0;
  }
}

double RegionCells::cells_in(const Grid& grid, const Rect& rect) {
  const auto between = [](const Axis& axis, std::int32_t begin, std::int32_t length) {
    return static_cast<double>(axis.cell_at(begin + length) - axis.cell_at(begin));
  };
  return between(grid.rows, rect.row, rect.rows) * between(grid.cols, rect.col, rect.cols);
}

// Whether a rectangle shares a cell, or the tile that it begins in, with another.
bool RegionCells::names_another(std::size_t slot, const Rect& rect, std::vector<Block>& cells,
                                std::vector<Block>& tiles) {
  const Grid& grid = grids_[slot];
  const Seen& seen = seen_[slot % seen_.size()];
  const std::size_t columns = static_cast<std::size_t>((seen.cols - 1) / seen.tile_cols + 1);
  const std::size_t rows = static_cast<std::size_t>((seen.rows - 1) / seen.tile_rows + 1);
  if (cells.empty()) cells.resize(grid.rows.count() * grid.cols.count());
  if (tiles.empty()) tiles.resize(rows * columns);
  const std::size_t row = grid.rows.cell_at(rect.row), end_row = grid.rows.cell_at(rect.row + rect.rows);
  const std::size_t col = grid.cols.cell_at(rect.col), end_col = grid.cols.cell_at(rect.col + rect.cols);
  const Block own{row * grid.cols.count() + col, end_row * grid.cols.count() + end_col, true};
  const auto other_in = [&](Block& block) {
    if (!block.taken) block = own;
    return block.first != own.first || block.last != own.last;
  };
  if (other_in(tiles[static_cast<std::size_t>(rect.row / seen.tile_rows) * columns +
                     static_cast<std::size_t>(rect.col / seen.tile_cols)])) {
    return true;
  }
  for (std::size_t r = row; r < end_row; ++r) {
    for (std::size_t c = col; c < end_col; ++c) {
      if (other_in(cells[r * grid.cols.count() + c])) return true;
    }
  }
  return false;
}

// Only what is used by parts that overlap, or begin in one tile, needs cells.
void RegionCells::keep_what_needs_them(const Schedule& schedule) {
  std::vector<std::uint8_t> needs(has_.size(), 0);
  std::vector<std::vector<Block>> cells(grids_.size()), tiles(grids_.size());
  for_each_use(schedule, [&](const Region& use) {
    const std::size_t slot = slot_of(use.rank, use.buffer);
    grids_[slot].cells_used += cells_in(grids_[slot], use.rect);
    std::uint8_t& needed = needs[static_cast<std::size_t>(use.buffer)];
    if (needed != 0) return;
    needed = names_another(slot, use.rect, cells[slot], tiles[slot]) ? 1 : 0;
  });
  // A copy engine fills whole tiles, or else parts of some.
  for (const Op& op : schedule.transfers) {
    if (!has(op.buffer)) continue;
    const Seen& seen = seen_[static_cast<std::size_t>(op.buffer)];
    const auto on_edge = [](std::int32_t at, std::int32_t tile, std::int32_t length) {
      return at % tile == 0 || at == length;
    };
    const bool whole = on_edge(op.rect.row, seen.tile_rows, seen.rows) &&
                       on_edge(op.rect.col, seen.tile_cols, seen.cols) &&
                       on_edge(op.rect.row + op.rect.rows, seen.tile_rows, seen.rows) &&
                       on_edge(op.rect.col + op.rect.cols, seen.tile_cols, seen.cols);
    if (!whole) needs[static_cast<std::size_t>(op.buffer)] = 1;
  }
  has_ = std::move(needs);
}

}  // namespace tritax
