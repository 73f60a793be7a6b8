// Cells of buffers of which operations use parts that overlap without being the same.
//
// What caches have of a buffer is known by rectangle, of those that workgroups read or write in the memory of
// their own GPU. Where any two of a GPU are equal or disjoint, and no two begin in the same tile of the
// buffer, that tile names them, and nothing is needed here. Else their edges cut the buffer into cells, rows
// by columns, so that each of them is a whole number of cells: the coarsest such grid. What is read is then
// looked up, counted and noted cell by cell, row by row, which is the same as reading its parts one by one.
//
//   Example: tiles of 128 x 128 that are stored one by one, and then read by strips of 64 rows and 1024
//   columns: cells of 64 x 128. A store writes two of them, a strip reads eight.
//
// A buffer whose cells would be far more than the operations that use them has none: who reads it finds what
// the tile has in which the rectangle begins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/schedule/op_traits.hpp"

namespace tritax {

class RegionCells {
 public:
  explicit RegionCells(const std::vector<Buffer>& buffers);

  // Before the run: all operations of kernels, each with the rank of its kernel.
  void see(const Op& op, std::int32_t rank) {
    for_each_own_use(op, rank, [&](const Region& use, bool reads) { see_use(use, reads); });
  }
  // Then once, of the ranks that are simulated: the first, for which the others behave alike.
  void finish(const Schedule& schedule, std::int32_t ranks);

  bool empty() const { return has_.empty(); }
  bool has(std::int32_t buffer) const { return !empty() && has_[static_cast<std::size_t>(buffer)] != 0; }

  // Of a buffer that has cells. Their number, on one GPU:
  std::size_t count(std::int32_t rank, std::int32_t buffer) const {
    const Grid& grid = grid_of(rank, buffer);
    return grid.rows.count() * grid.cols.count();
  }
  // Calls `visit(cell, bytes)` for the cells of a rectangle that was seen, row by row.
  template <typename Visit>
  void for_each(std::int32_t rank, std::int32_t buffer, const Rect& rect, Visit&& visit) const {
    const Grid& grid = grid_of(rank, buffer);
    const std::size_t end = grid.rows.cell_at(rect.row + rect.rows);
    const std::size_t first_col = grid.cols.cell_at(rect.col),
                      end_col = grid.cols.cell_at(rect.col + rect.cols);
    for (std::size_t row = grid.rows.cell_at(rect.row); row < end; ++row) {
      const double bytes = grid.rows.length(row) * grid.element_bytes;
      for (std::size_t col = first_col; col < end_col; ++col) {
        visit(row * grid.cols.count() + col, bytes * grid.cols.length(col));
      }
    }
  }

 private:
  struct Seen {  // of a buffer
    std::int32_t rows = 0, cols = 0;
    std::int32_t tile_rows = 1, tile_cols = 1;
    bool is_read = false;
    bool by_parts = false;  // something is no tile
  };
  class Axis {  // rows or columns
   public:
    void begin(std::int32_t length) { cell_at_.assign(static_cast<std::size_t>(length) + 1, 0); }
    void cut(std::int32_t at) { cell_at_[static_cast<std::size_t>(at)] = 1; }
    void finish();

    std::size_t count() const { return cuts_.size() - 1; }
    std::size_t cell_at(std::int32_t at) const { return cell_at_[static_cast<std::size_t>(at)]; }
    double length(std::size_t cell) const { return cuts_[cell + 1] - cuts_[cell]; }

   private:
    std::vector<std::uint32_t> cell_at_;  // by position; until finish(): 1 where it is cut
    std::vector<std::int32_t> cuts_;      // the first position of every cell, and the end of the last
  };
  struct Grid {  // of a buffer of one GPU; empty where nothing uses it
    Axis rows, cols;
    double element_bytes = 0;
    double uses = 0;
    double cells_used = 0;  // by all uses together
    bool any() const { return uses > 0; }
    bool has_too_many() const;
  };
  struct Block {  // of cells or of tiles, which a rectangle is or begins in
    std::size_t first = 0, last = 0;
    bool taken = false;
  };

  // Calls `visit(region, reads)` for what an operation uses of the memory of its own GPU.
  template <typename Visit>
  static void for_each_own_use(const Op& op, std::int32_t rank, Visit&& visit) {
    if (!moves_data(op.kind)) return;
    for_each_read(op, rank, [&](const Region& region) {
      if (region.rank == rank) visit(region, true);
    });
    for_each_write(op, [&](const Region& region, bool) {
      if (region.rank == rank) visit(region, false);
    });
  }
  void see_use(const Region& use, bool reads) {
    Seen& seen = seen_[static_cast<std::size_t>(use.buffer)];
    seen.is_read = seen.is_read || reads;
    if (!seen.by_parts) seen.by_parts = !is_tile(seen, use.rect);
  }
  static bool is_tile(const Seen& seen, const Rect& rect) {
    return rect.row % seen.tile_rows == 0 && rect.col % seen.tile_cols == 0 &&
           rect.rows == std::min(seen.tile_rows, seen.rows - rect.row) &&
           rect.cols == std::min(seen.tile_cols, seen.cols - rect.col);
  }
  template <typename Visit>
  void for_each_use(const Schedule& schedule, const Visit& visit) const;
  void cut(const Schedule& schedule, std::int32_t ranks);
  void drop_too_fine();
  void keep_what_needs_them(const Schedule& schedule);
  static double cells_in(const Grid& grid, const Rect& rect);
  bool names_another(std::size_t slot, const Rect& rect, std::vector<Block>& cells,
                     std::vector<Block>& tiles);

  std::size_t slot_of(std::int32_t rank, std::int32_t buffer) const {
    return static_cast<std::size_t>(rank) * seen_.size() + static_cast<std::size_t>(buffer);
  }
  const Grid& grid_of(std::int32_t rank, std::int32_t buffer) const { return grids_[slot_of(rank, buffer)]; }

  std::vector<Seen> seen_;         // by buffer
  std::vector<std::uint8_t> has_;  // by buffer; empty if none has cells
  std::vector<Grid> grids_;        // by rank and buffer, likewise
};

}  // namespace tritax
