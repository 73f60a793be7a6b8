// Cells of buffers in which operations read regions that overlap in part.
//
// Cache state of a buffer is kept per rectangle, for rectangles that workgroups read or write in the memory
// of their own GPU. If any two rectangles that are read are equal or disjoint, the tile in which a rectangle
// begins names it, and no cells are needed. Otherwise the edges of all rectangles that are read or written
// cut the buffer into cells, rows by columns: the coarsest grid in which each rectangle is a whole number of
// cells. A read is then looked up, counted and noted cell by cell, row by row, which equals reading its parts
// one by one.
//
//   Example: tiles of 128 x 128 are stored, read one by one, and read by strips of 64 rows and 1024 columns:
//   cells of 64 x 128. A store writes two cells, a strip reads eight.
//
// A buffer has no cells if the rectangles that are written differ from the rectangles that are read, but no
// two reads overlap in part: for a strip over many tiles, the cache state of its first tile counts. A buffer
// also has no cells if they would far outnumber the operations that use them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/schedule/op_traits.hpp"

namespace tritax {

class RegionCells {
 public:
  explicit RegionCells(const std::vector<Buffer>& buffers);

  // Before the run: all operations of kernels, each with the rank of its kernel. Regions can overlap in part
  // only if one of them is not a whole tile.
  void see(const Op& op, std::int32_t rank) {
    if (!reads_own(op, rank)) return;
    const bool copies = op.kind == OpKind::copy;
    const auto buffer = static_cast<std::size_t>(copies ? op.src_buffer : op.buffer);
    if (has_[buffer] != 0) return;
    const Tiles& tiles = tiles_[buffer];
    const std::int32_t row = copies ? op.src_row : op.rect.row, col = copies ? op.src_col : op.rect.col;
    const bool tile = tiles.begins(row, col) && op.rect.rows == std::min(tiles.rows, tiles.all_rows - row) &&
                      op.rect.cols == std::min(tiles.cols, tiles.all_cols - col);
    if (!tile) has_[buffer] = 1;
  }
  // Call it once after see(), with the number of simulated ranks.
  void finish(const Schedule& schedule, std::int32_t ranks);

  bool empty() const { return has_.empty(); }
  bool has(std::int32_t buffer) const { return !empty() && has_[static_cast<std::size_t>(buffer)] != 0; }

  // Number of cells of a buffer that has cells, on one GPU.
  std::size_t count(std::int32_t rank, std::int32_t buffer) const {
    const Grid& grid = grid_of(rank, buffer);
    return grid.rows.count() * grid.cols.count();
  }
  // Calls `visit(cell, bytes)` for the cells of a rectangle that was seen, row by row. The buffer must have
  // cells.
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
  class Axis {  // rows or columns
   public:
    void begin(std::int32_t length) { bits_.assign(static_cast<std::size_t>(length) / 64 + 1, 0); }
    void cut(std::int32_t at) { bits_[static_cast<std::size_t>(at) / 64] |= std::uint64_t{1} << at % 64; }
    void finish();

    std::size_t count() const { return cuts_.size() - 1; }
    // The cell that begins at `at`, or the cell behind the last.
    std::size_t cell_at(std::int32_t at) const {
      const auto word = static_cast<std::size_t>(at) / 64;
      const std::uint64_t below = (std::uint64_t{1} << at % 64) - 1;
      return before_[word] + static_cast<std::size_t>(std::popcount(bits_[word] & below));
    }
    double length(std::size_t cell) const { return cuts_[cell + 1] - cuts_[cell]; }

   private:
    std::vector<std::uint64_t> bits_;    // by position: whether there is a cut
    std::vector<std::uint32_t> before_;  // by word of bits_: cuts before the word
    std::vector<std::int32_t> cuts_;
  };
  struct Grid {  // of a buffer on one GPU; empty if no operation uses it
    Axis rows, cols;
    double element_bytes = 0;
    double uses = 0;
    double cells_used = 0;  // by all uses, summed
    bool any() const { return uses > 0; }
    bool has_too_many() const;
  };
  struct Painted {  // of a cell: first and last cell of the rectangle that covers it
    std::size_t first = 0, last = 0;
    bool by_one = false;
  };

  struct Tiles {  // of a buffer
    std::int32_t rows = 1, cols = 1, all_rows = 0, all_cols = 0;
    bool of_two = false;  // both are powers of two
    // Whether a tile begins there.
    bool begins(std::int32_t row, std::int32_t col) const {
      return of_two ? ((row & (rows - 1)) | (col & (cols - 1))) == 0 : row % rows == 0 && col % cols == 0;
    }
  };

  static bool reads_own(const Op& op, std::int32_t rank) {
    return op.kind == OpKind::copy ? op.src_rank == rank : loads_tile(op.kind) && op.rank == rank;
  }
  static bool same(const Region& a, const Region& b) {
    return a.buffer == b.buffer && a.rank == b.rank && a.rect.row == b.rect.row && a.rect.col == b.rect.col &&
           a.rect.rows == b.rect.rows && a.rect.cols == b.rect.cols;
  }
  void collect_reads(const Schedule& schedule);
  void cut(const Schedule& schedule, const Region& use);
  void finish_cuts();
  void keep_what_overlaps();
  void cut_all(const Schedule& schedule, std::int32_t ranks);
  void drop_too_fine();
  static double cells_in(const Grid& grid, const Rect& rect);

  std::size_t slot_of(std::int32_t rank, std::int32_t buffer) const {
    return static_cast<std::size_t>(rank) * buffers_ + static_cast<std::size_t>(buffer);
  }
  const Grid& grid_of(std::int32_t rank, std::int32_t buffer) const { return grids_[slot_of(rank, buffer)]; }

  std::size_t buffers_ = 0;
  std::vector<Tiles> tiles_;       // by buffer
  std::vector<Region> reads_;      // in finish(): reads of buffers with partial reads, no repeats in a row
  std::vector<std::uint8_t> has_;  // by buffer; empty if none has cells
  std::vector<Grid> grids_;        // by rank and buffer; empty if no buffer has cells
};

// Cells of a schedule for the ranks 0 … `ranks`-1, which run all kernels of the schedule.
RegionCells region_cells_of(const Schedule& schedule, std::int32_t ranks);

}  // namespace tritax
