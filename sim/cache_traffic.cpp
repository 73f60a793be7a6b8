#include "sim/cache_traffic.hpp"

namespace tritax {

namespace {
CacheTraffic through_l2(std::span<const CacheRow> rows) {
  CacheTraffic sum;
  for (const CacheRow& row : rows) {
    if (row.die >= 0) sum += row.traffic;
  }
  return sum;
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }
}  // namespace

CacheTraffic& CacheTraffic::operator+=(const CacheTraffic& more) {
  asked_bytes += more.asked_bytes;
  l2_hit_bytes += more.l2_hit_bytes;
  llc_hit_bytes += more.llc_hit_bytes;
  hbm_read_bytes += more.hbm_read_bytes;
  hbm_written_bytes += more.hbm_written_bytes;
  return *this;
}

double l2_hit(std::span<const CacheRow> rows) {
  const CacheTraffic sum = through_l2(rows);
  return share(sum.l2_hit_bytes, sum.asked_bytes);
}

double llc_hit(std::span<const CacheRow> rows) {
  const CacheTraffic sum = through_l2(rows);
  return share(sum.llc_hit_bytes, sum.asked_bytes - sum.l2_hit_bytes);
}

double hbm_bytes(std::span<const CacheRow> rows) {
  double bytes = 0;
  for (const CacheRow& row : rows) bytes += row.traffic.hbm_read_bytes + row.traffic.hbm_written_bytes;
  return bytes;
}

void CacheCounters::add_column(std::size_t what) {
  column_of_[what] = table_.size();
  table_.resize(table_.size() + static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(dies_ + 1));
}

std::vector<CacheRow> CacheCounters::rows() const {
  std::vector<CacheRow> rows;
  for (std::int32_t rank = 0; rank < ranks_; ++rank) {
    for (std::int32_t die = -1; die < dies_; ++die) {
      for (std::size_t what = 0; what < column_of_.size(); ++what) {
        if (column_of_[what] == kNone) continue;
        const CacheTraffic& traffic =
            table_[column_of_[what] + static_cast<std::size_t>(rank * (dies_ + 1) + die + 1)];
        if (traffic.asked_bytes == 0 && traffic.hbm_written_bytes == 0) continue;
        rows.push_back({rank, die, static_cast<std::int32_t>(what / kOpTraits.size()),
                        static_cast<OpKind>(what % kOpTraits.size()), traffic});
      }
    }
  }
  return rows;
}

}  // namespace tritax
