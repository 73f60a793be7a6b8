// Which operations read and write which data, and which of them meet. Internal to model/schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/sync_graph.hpp"

namespace tritax {

enum class AccessKind : std::uint8_t { read, write, atomic_add };

// One rectangle of one rank's buffer that one operation reads or writes.
struct Access {
  OpPoint at;
  std::int16_t rank = 0;
  std::int16_t buffer = 0;
  AccessKind kind = AccessKind::read;
  Rect rect;
};

// A read and a write of common elements. Both are indices into Accesses::list.
struct Conflict {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

struct Accesses {
  std::vector<Access> list;  // in order of workgroup runs and operations
  std::vector<Conflict>
      read_write;  // first: the read, second: a write by any workgroup; in order of the reads
};

// All accesses to buffers that some operation writes on that rank, and all pairs of reads and writes that
// meet. Buffers that nobody writes hold inputs; they need no order.
Accesses find_accesses(const SyncGraph& graph);

// Pairs of writes of different workgroup runs that meet and do not commute (two atomic additions do), first <
// second.
std::vector<Conflict> find_write_conflicts(const SyncGraph& graph, const Accesses& accesses);

// Both lie inside a buffer, so that the sums fit.
inline bool overlap(const Rect& a, const Rect& b) {
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.col < b.col + b.cols && b.col < a.col + a.cols;
}

}  // namespace tritax
