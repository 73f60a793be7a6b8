// Cache hits of a region that overlaps others in part; see region_cells.hpp. A record per cell replaces the
// record per tile.
#include "sim/engine_tiles.hpp"

namespace tritax::engine {

std::vector<TileRecord>& TileRecords::cells_of(std::int32_t rank, std::int32_t buffer) {
  auto& table = records_[static_cast<std::size_t>(rank) * run_.schedule.buffers.size() +
                         static_cast<std::size_t>(buffer)];
  if (table.empty()) table.resize(region_cells_.count(rank, buffer));
  return table;
}

// A region comes from several memories at once: its first bytes arrive after the mean latency of these
// memories. It counts as a re-read if most of it has been written before.
void TileRecords::read_cells(WorkgroupState& wg, std::int32_t buffer, const Rect& rect, DataPath& path,
                             double now) {
  const std::int32_t rank = wg.rank;
  std::vector<TileRecord>& records = cells_of(rank, buffer);
  const TileRecord none;
  const TileRecord* written_last = &none;
  double reread_bytes = 0;
  read_bytes_ = {};
  region_cells_.for_each(rank, buffer, rect, [&](std::size_t cell, double bytes) {
    TileRecord& record = records[cell];
    const Level level = level_of(record, rank, wg.die, now);
    read_bytes_[static_cast<std::size_t>(level)] += bytes;
    if (record.written()) {
      if (level != Level::chip) reread_bytes += bytes;
      const bool later_than_last = !written_last->written() || write_paths_[written_last->writer].time_ns <
                                                                   write_paths_[record.writer].time_ns;
      if (later_than_last) written_last = &record;
    }
    note_read(record, rank, wg.die, level, bytes, now);
  });
  blame_boundary(wg, *written_last);
  path.rereads = 2 * reread_bytes > path.bytes;
  const auto any_from = [&](Level level) { return bytes_read(level) > 0; };
  path.source = any_from(Level::hbm)   ? Level::hbm
                : any_from(Level::llc) ? Level::llc
                : any_from(Level::l2)  ? Level::l2
                                       : Level::chip;
  path.mixed = bytes_read(path.source) < path.bytes;
}

double TileRecords::mixed_latency_ns(const DataPath& path) const {
  double sum = 0;
  for (const Level level : {Level::chip, Level::l2, Level::llc, Level::hbm}) {
    sum += bytes_read(level) * latency_of(level);
  }
  return sum / path.bytes;
}

// Notes the running store, which the caches have taken, cell by cell.
void TileRecords::note_cells_written(const WorkgroupState& wg, double now) {
  const Op& op = run_.schedule.ops[wg.store_op];
  if (!region_cells_.has(op.buffer)) return;
  GpuState& gpu = run_.gpus[static_cast<std::size_t>(wg.rank)];
  const double l2_end = gpu.l2[static_cast<std::size_t>(wg.die)].mark(now), llc_end = gpu.llc.mark(now);
  const auto writer = static_cast<std::uint32_t>(write_paths_.size());
  write_paths_.push_back(wg.sender_busy ? run_.sender_of(wg).path : wg.path);
  write_paths_.back().charge(wg.store_part, now);
  std::vector<TileRecord>& records = cells_of(wg.rank, op.buffer);
  double behind = wg.store_bytes;
  region_cells_.for_each(wg.rank, op.buffer, op.rect, [&](std::size_t cell, double bytes) {
    behind -= bytes;
    const double llc_behind = run_.machine.gpu.llc_bytes > 0 ? behind : 0;
    records[cell] = {l2_end - behind, llc_end - llc_behind, wg.die, writer};
  });
}

// Notes a write by a copy engine, behind the L2s.
void TileRecords::note_cells_copied(const Op& op, const Path& path, double now) {
  const std::int32_t rank = run_.home(op.rank);
  const double llc_mark = run_.gpus[static_cast<std::size_t>(rank)].llc.mark(now);
  const auto writer = static_cast<std::uint32_t>(write_paths_.size());
  write_paths_.push_back(path);
  std::vector<TileRecord>& records = cells_of(rank, op.buffer);
  region_cells_.for_each(rank, op.buffer, op.rect, [&](std::size_t cell, double) {
    records[cell].die = -1;
    records[cell].llc_mark = llc_mark;
    records[cell].writer = writer;
  });
}

}  // namespace tritax::engine
