#include "sim/region_cells.hpp"

#include "model/schedule/items.hpp"

namespace tritax {

void RegionCells::Axis::finish() {
  before_.clear();
  cuts_.clear();
  for (std::size_t word = 0; word < bits_.size(); ++word) {
    before_.push_back(static_cast<std::uint32_t>(cuts_.size()));
    for (std::uint64_t left = bits_[word]; left != 0; left &= left - 1) {
      cuts_.push_back(static_cast<std::int32_t>(word * 64) + std::countr_zero(left));
    }
  }
}

bool RegionCells::Grid::has_too_many() const {
  constexpr double kMostByUse = 64, kAlways = 4096;
  const double cells = static_cast<double>(rows.count()) * static_cast<double>(cols.count());
  return std::max(cells, cells_used) > kMostByUse * uses + kAlways;
}

RegionCells::RegionCells(const std::vector<Buffer>& buffers)
    : buffers_(buffers.size()), has_(buffers.size(), 0) {
  for (const Buffer& buffer : buffers) {
    Tiles tiles{std::max(1, buffer.tile_rows), std::max(1, buffer.tile_cols), buffer.rows, buffer.cols};
    tiles.of_two = std::has_single_bit(static_cast<std::uint32_t>(tiles.rows)) &&
                   std::has_single_bit(static_cast<std::uint32_t>(tiles.cols));
    tiles_.push_back(tiles);
  }
}

void RegionCells::finish(const Schedule& schedule, std::int32_t ranks) {
  if (std::find(has_.begin(), has_.end(), 1) != has_.end()) {
    collect_reads(schedule);
    grids_.resize(static_cast<std::size_t>(ranks) * buffers_);
    for (const Region& read : reads_) cut(schedule, read);
    finish_cuts();
    drop_too_fine();
    keep_what_overlaps();
    cut_all(schedule, ranks);
    drop_too_fine();
    reads_ = {};
  }
  if (std::find(has_.begin(), has_.end(), 1) != has_.end()) return;
  has_.clear();
  grids_.clear();
}

void RegionCells::collect_reads(const Schedule& schedule) {
  for (const Kernel& kernel : schedule.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      for (const Op& op : ops_of(schedule, program_of(kernel, p))) {
        if (!reads_own(op, kernel.rank)) continue;
        const Region read = op.kind == OpKind::copy ? source_of(op) : tile_of(op);
        if (has(read.buffer) && (reads_.empty() || !same(reads_.back(), read))) reads_.push_back(read);
      }
    }
  }
}

void RegionCells::cut(const Schedule& schedule, const Region& use) {
  Grid& grid = grids_[slot_of(use.rank, use.buffer)];
  if (!grid.any()) {
    const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(use.buffer)];
    grid.rows.begin(buffer.rows);
    grid.cols.begin(buffer.cols);
    grid.element_bytes = row_bytes(buffer, kCodecGroup) / kCodecGroup;
  }
  ++grid.uses;
  grid.rows.cut(use.rect.row);
  grid.rows.cut(use.rect.row + use.rect.rows);
  grid.cols.cut(use.rect.col);
  grid.cols.cut(use.rect.col + use.rect.cols);
}

void RegionCells::finish_cuts() {
  for (Grid& grid : grids_) {
    if (!grid.any()) continue;
    grid.rows.finish();
    grid.cols.finish();
  }
}

double RegionCells::cells_in(const Grid& grid, const Rect& rect) {
  const auto between = [](const Axis& axis, std::int32_t begin, std::int32_t length) {
    return static_cast<double>(axis.cell_at(begin + length) - axis.cell_at(begin));
  };
  return between(grid.rows, rect.row, rect.rows) * between(grid.cols, rect.col, rect.cols);
}

void RegionCells::drop_too_fine() {
  for (std::size_t slot = 0; slot < grids_.size(); ++slot) {
    if (grids_[slot].any() && grids_[slot].has_too_many()) has_[slot % buffers_] = 0;
  }
}

// Keeps the buffers with partial overlaps; the grids are cut by the reads.
void RegionCells::keep_what_overlaps() {
  std::vector<std::uint8_t> overlaps(buffers_, 0);
  std::vector<std::vector<Painted>> cells(grids_.size());
  for (const Region& read : reads_) {
    std::uint8_t& found = overlaps[static_cast<std::size_t>(read.buffer)];
    if (!has(read.buffer) || found != 0) continue;
    const std::size_t slot = slot_of(read.rank, read.buffer);
    if (cells[slot].empty()) cells[slot].resize(count(read.rank, read.buffer));
    std::size_t first = cells[slot].size(), last = 0;
    for_each(read.rank, read.buffer, read.rect, [&](std::size_t cell, double) {
      first = std::min(first, cell);
      last = cell;
    });
    for_each(read.rank, read.buffer, read.rect, [&](std::size_t cell, double) {
      Painted& painted = cells[slot][cell];
      if (!painted.by_one) painted = {first, last, true};
      if (painted.first != first || painted.last != last) found = 1;
    });
  }
  has_ = std::move(overlaps);
}

// Cuts the grids anew by all uses of buffers with cells, not by reads alone.
void RegionCells::cut_all(const Schedule& schedule, std::int32_t ranks) {
  for (Grid& grid : grids_) grid = {};
  if (std::find(has_.begin(), has_.end(), 1) == has_.end()) return;
  const auto for_each_use = [&](const auto& visit) {
    const auto visit_if = [&](const Region& use, std::int32_t rank) {
      if (use.rank == rank && has(use.buffer)) visit(use);
    };
    for (const Region& read : reads_) visit_if(read, read.rank);
    for (const Kernel& kernel : schedule.kernels) {
      for (std::size_t p = 0; p < program_count(kernel); ++p) {
        for (const Op& op : ops_of(schedule, program_of(kernel, p))) {
          for_each_write(op, [&](const Region& write, bool) { visit_if(write, kernel.rank); });
        }
      }
    }
    for (const Op& op : schedule.transfers) visit_if({op.buffer, op.rank % ranks, op.rect}, op.rank % ranks);
  };
  for_each_use([&](const Region& use) { cut(schedule, use); });
  finish_cuts();
  for_each_use([&](const Region& use) {
    Grid& grid = grids_[slot_of(use.rank, use.buffer)];
    grid.cells_used += cells_in(grid, use.rect);
  });
}

RegionCells region_cells_of(const Schedule& schedule, std::int32_t ranks) {
  RegionCells cells(schedule.buffers);
  for (const Kernel& kernel : schedule.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      for (const Op& op : ops_of(schedule, program_of(kernel, p))) cells.see(op, kernel.rank);
    }
  }
  cells.finish(schedule, ranks);
  return cells;
}

}  // namespace tritax
