// The caches that hold the tiles of buffers, and the writers of the tiles.
#include "sim/engine_tiles.hpp"

#include <algorithm>

#include "model/schedule/op_traits.hpp"

namespace tritax::engine {

TileRecords::Grid::Grid(const Buffer& buffer)
    : tile_rows(std::max(1, buffer.tile_rows)),
      tile_cols(std::max(1, buffer.tile_cols)),
      rows((buffer.rows + tile_rows - 1) / tile_rows),
      columns((buffer.cols + tile_cols - 1) / tile_cols) {}

TileRecords::TileRecords(Run& run)
    : run_(run),
      by_tile_(run.schedule.buffers.size(), 0),
      records_(static_cast<std::size_t>(run.simulated_ranks) * run.schedule.buffers.size()),
      region_cells_(run.schedule.buffers),
      latencies_ns_{0, run.machine.gpu.l2_latency_ns, run.machine.gpu.llc_latency_ns,
                    run.machine.gpu.hbm_latency_ns} {
  for (const Buffer& buffer : run_.schedule.buffers) grids_.emplace_back(buffer);
  for (const Op& op : run_.schedule.transfers) by_tile_[static_cast<std::size_t>(op.src_buffer)] = 1;
}

void TileRecords::see(const Op& op, std::int32_t rank) {
  for_each_read(op, rank, [&](const Region& read) { by_tile_[static_cast<std::size_t>(read.buffer)] = 1; });
  region_cells_.see(op, rank);
}

void TileRecords::finish() {
  region_cells_.finish(run_.schedule, run_.simulated_ranks);
  for (std::size_t b = 0; b < by_tile_.size(); ++b) {
    if (region_cells_.has(static_cast<std::int32_t>(b))) by_tile_[b] = 0;
  }
}

TileRecord& TileRecords::record_of(std::int32_t rank, std::int32_t buffer, std::int32_t row,
                                   std::int32_t col) {
  const Grid& grid = grids_[static_cast<std::size_t>(buffer)];
  auto& table = records_[static_cast<std::size_t>(rank) * grids_.size() + static_cast<std::size_t>(buffer)];
  const auto columns = static_cast<std::size_t>(grid.columns);
  if (table.empty()) table.resize(static_cast<std::size_t>(grid.rows) * columns);
  return table[static_cast<std::size_t>(row / grid.tile_rows) * columns +
               static_cast<std::size_t>(col / grid.tile_cols)];
}

Level TileRecords::level_of(const TileRecord& record, std::int32_t rank, std::int32_t die, double now) {
  GpuState& gpu = run_.gpus[rank];
  if (run_.options.counterfactual.intermediates_on_chip && record.written()) return Level::chip;
  if (record.die == die && gpu.l2[static_cast<std::size_t>(die)].holds(record.l2_mark, now)) return Level::l2;
  if (run_.machine.gpu.llc_bytes > 0 && gpu.llc.holds(record.llc_mark, now)) return Level::llc;
  return Level::hbm;
}

void TileRecords::note_read(TileRecord& record, std::int32_t rank, std::int32_t die, Level level,
                            double bytes, double now) {
  GpuState& gpu = run_.gpus[rank];
  ReuseCache& l2 = gpu.l2[static_cast<std::size_t>(die)];
  if (level == Level::llc || level == Level::hbm) l2.insert(bytes, now);
  if (level == Level::hbm && run_.machine.gpu.llc_bytes > 0) gpu.llc.insert(bytes, now);
  record.die = die;
  record.l2_mark = l2.mark(now);
  record.llc_mark = gpu.llc.mark(now);
}

void TileRecords::read(WorkgroupState& wg, std::int32_t buffer, const Rect& rect, DataPath& path,
                       double now) {
  if (by_tile_[static_cast<std::size_t>(buffer)] == 0) {
    read_cells(wg, buffer, rect, path, now);
    return;
  }
  TileRecord& record = record_of(wg.rank, buffer, rect.row, rect.col);
  path.source = level_of(record, wg.rank, wg.die, now);
  path.rereads = record.written() && path.source != Level::chip;
  const double bytes = bytes_of(run_.schedule.buffers[static_cast<std::size_t>(buffer)], rect);
  blame_boundary(wg, record);
  note_read(record, wg.rank, wg.die, path.source, bytes, now);
}

void TileRecords::begin_write(WorkgroupState& wg, const Op& op) {
  wg.stored = nullptr;
  if (op.rank != wg.rank || by_tile_[static_cast<std::size_t>(op.buffer)] == 0) return;
  wg.stored = &record_of(op.rank, op.buffer, op.rect.row, op.rect.col);
  __builtin_prefetch(wg.stored, 1);
}

// The running store has been written: its data lies in the last-level cache of its GPU, and, if the store is
// local, in the writer's L2.
void TileRecords::end_write(const WorkgroupState& wg, double now) {
  GpuState& gpu = run_.gpu_of(wg.store_rank);
  const double bytes = wg.store_bytes;
  if (run_.machine.gpu.llc_bytes > 0) gpu.llc.insert(bytes, now);
  if (wg.store_rank != wg.rank) return;
  const std::int32_t die = wg.die;
  ReuseCache& l2 = gpu.l2[static_cast<std::size_t>(die)];
  l2.insert(bytes, now);
  if (wg.stored == nullptr) {
    if (!region_cells_.empty()) note_cells_written(wg, now);
    return;
  }
  TileRecord& record = *wg.stored;
  record.die = die;
  record.l2_mark = l2.mark(now);
  record.llc_mark = gpu.llc.mark(now);
  if (!record.written()) {
    record.writer = static_cast<std::uint32_t>(write_paths_.size());
    write_paths_.emplace_back();
  }
  Path& path = write_paths_[record.writer];
  path = wg.sender_busy ? run_.sender_of(wg).path : wg.path;
  path.charge(wg.store_part, now);
}

void TileRecords::note_copied(const Op& op, const Path& path, double now) {
  GpuState& gpu = run_.gpu_of(op.rank);
  const Buffer& buffer = run_.schedule.buffers[static_cast<std::size_t>(op.buffer)];
  if (run_.machine.gpu.llc_bytes > 0) gpu.llc.insert(bytes_of(buffer, op.rect), now);
  if (region_cells_.has(op.buffer)) return note_cells_copied(op, path, now);
  if (by_tile_[static_cast<std::size_t>(op.buffer)] == 0) return;
  const Grid& grid = grids_[static_cast<std::size_t>(op.buffer)];
  const auto writer = static_cast<std::uint32_t>(write_paths_.size());
  write_paths_.push_back(path);
  for (std::int32_t row = op.rect.row / grid.tile_rows * grid.tile_rows; row < op.rect.row + op.rect.rows;
       row += grid.tile_rows) {
    for (std::int32_t col = op.rect.col / grid.tile_cols * grid.tile_cols; col < op.rect.col + op.rect.cols;
         col += grid.tile_cols) {
      TileRecord& record = record_of(run_.home(op.rank), op.buffer, row, col);
      record.die = -1;
      record.llc_mark = gpu.llc.mark(now);
      record.writer = writer;
    }
  }
}

// A workgroup whose kernel was held back by a boundary reads its first tile: from the moment the tile was
// written, the wait is the bulk-synchronous tax, up to the boundary; what follows the boundary is launch tax.
void TileRecords::blame_boundary(WorkgroupState& wg, const TileRecord& record) const {
  const KernelState& kernel = run_.kernels[wg.kernel];
  if (wg.read_since_start) return;
  wg.read_since_start = true;
  if (kernel.boundary_ns < 0 || !record.written()) return;
  const Path& written = write_paths_[record.writer];
  if (!later(kernel.boundary_ns, written.time_ns)) return;
  const double now = wg.path.time_ns;
  // Only a workgroup of the first wave waited for the boundary; later ones waited for a compute unit.
  const double first_wave_ns = run_.machine.gpu.workgroup_dispatch_ns * run_.machine.gpu.cus_per_xcd;
  if (later(wg.op_start_ns, kernel.start.time_ns + first_wave_ns)) return;
  wg.path = written;
  wg.path.charge(&TimeAccount::bulk_synchronous_ns, kernel.boundary_ns);
  wg.path.charge(&TimeAccount::launch_ns, now);
}

}  // namespace tritax::engine
