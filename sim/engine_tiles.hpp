// Where the data of buffers lies: which caches hold a tile that operations of other kinds than products read,
// and who wrote the tile.
//
// TileRecords owns a record per tile of a buffer; or per cell, if operations read regions of the buffer that
// overlap in part (region_cells.hpp). It changes the caches of a GPU, and the path of a workgroup that a
// kernel boundary has held up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/engine_data_path.hpp"
#include "sim/engine_run.hpp"
#include "sim/region_cells.hpp"

namespace tritax::engine {

struct TileRecord {  // state of one tile-sized cell of a buffer of a rank
  double l2_mark = -1e300;
  double llc_mark = -1e300;
  std::int32_t die = -1;
  std::uint32_t writer = kNobody;  // last write: index into write_paths_

  bool written() const { return writer != kNobody; }
};

class TileRecords {
 public:
  explicit TileRecords(Run& run);

  // Before the run: all operations that move data, each with the rank of its kernel; then finish().
  void see(const Op& op, std::int32_t rank);
  void finish();

  // A workgroup reads a rectangle of its GPU's memory: sets where the bytes of `path` come from.
  void read(WorkgroupState& wg, std::int32_t buffer, const Rect& rect, DataPath& path, double now);
  // A workgroup begins and ends a store; at the end the data lies in caches.
  void begin_write(WorkgroupState& wg, const Op& op);
  void end_write(const WorkgroupState& wg, double now);
  // A copy engine has written every tile of the target, behind the L2s.
  void note_copied(const Op& op, const Path& path, double now);

  // Latency of the first bytes that a transfer reads.
  double read_latency_ns(const DataPath& path) const {
    return path.mixed ? mixed_latency_ns(path) : latency_of(path.source);
  }
  // Bytes of the last read of cells, by source; it counts for a path that is mixed.
  double bytes_read(Level level) const { return read_bytes_[static_cast<std::size_t>(level)]; }

 private:
  struct Grid {  // of the tile-sized cells of a buffer
    explicit Grid(const Buffer& buffer);
    std::int32_t tile_rows = 1, tile_cols = 1;
    std::int32_t rows = 0, columns = 0;
  };

  double latency_of(Level level) const { return latencies_ns_[static_cast<std::size_t>(level)]; }
  [[gnu::noinline, gnu::cold]] double mixed_latency_ns(const DataPath& path) const;
  TileRecord& record_of(std::int32_t rank, std::int32_t buffer, std::int32_t row, std::int32_t col);
  Level level_of(const TileRecord& record, std::int32_t rank, std::int32_t die, double now);
  void note_read(TileRecord& record, std::int32_t rank, std::int32_t die, Level level, double bytes,
                 double now);
  void blame_boundary(WorkgroupState& wg, const TileRecord& record) const;

  // engine_regions.cpp: buffers with cells
  std::vector<TileRecord>& cells_of(std::int32_t rank, std::int32_t buffer);
  [[gnu::noinline, gnu::cold]] void read_cells(WorkgroupState& wg, std::int32_t buffer, const Rect& rect,
                                               DataPath& path, double now);
  [[gnu::noinline, gnu::cold]] void note_cells_written(const WorkgroupState& wg, double now);
  [[gnu::noinline, gnu::cold]] void note_cells_copied(const Op& op, const Path& path, double now);

  Run& run_;
  std::vector<std::uint8_t> by_tile_;             // by buffer: operations read it, and it has no cells
  std::vector<Grid> grids_;                       // by buffer
  std::vector<std::vector<TileRecord>> records_;  // [rank * buffers + buffer], of tiles or of cells
  RegionCells region_cells_;
  std::vector<Path> write_paths_;  // separate, because few reads of a record need the path
  std::array<double, 4> read_bytes_{};
  const std::array<double, 4> latencies_ns_;  // by Level
};

}  // namespace tritax::engine
