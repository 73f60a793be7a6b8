// Finds which operations read and write which data, and which accesses overlap. Internal to model/schedule.
#pragma once

#include <cstdint>
#include <span>
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

// All writes of one kind of one workgroup run to one rectangle. Their program order is known, so one search
// answers a question about all writes. Without groups, a long workgroup that works on one tile would have as
// many conflicts with itself as the square of its operations.
struct WriteGroup {
  Access first;
  std::uint32_t begin = 0;  // into Accesses::write_ops
  std::uint32_t end = 0;
};

// A read and a group of writes with common elements, or two groups of writes.
struct Conflict {
  std::uint32_t first = 0;   // into Accesses::reads, or writes
  std::uint32_t second = 0;  // into Accesses::writes
};

struct Accesses {
  std::vector<Access> reads;       // in order of workgroup runs and operations; includes atomic additions
  std::vector<WriteGroup> writes;  // in order of workgroup runs
  std::vector<std::uint32_t> write_ops;  // operations of the groups, in program order
  std::vector<Conflict> read_write;      // in order of the reads

  std::span<const std::uint32_t> ops_of(const WriteGroup& group) const {
    return std::span(write_ops).subspan(group.begin, group.end - group.begin);
  }
};

// All accesses that may need an order, and all pairs of overlapping reads and writes. An atomic addition is a
// write and a read, but as a read it has no conflict with other additions: additions commute. Left out are
// reads of buffers without writes on that rank, if the schedule lists no inputs or its inputs fill the whole
// read region: such reads need no write before them.
Accesses find_accesses(const SyncGraph& graph);

// Pairs of groups of different workgroup runs that overlap and do not commute (two atomic additions commute),
// first < second.
std::vector<Conflict> find_write_conflicts(const SyncGraph& graph, const Accesses& accesses);

// The same within one workgroup run, whose program orders the writes: first = second if one group has several
// writes.
std::vector<Conflict> find_own_rewrites(const SyncGraph& graph, const Accesses& accesses);

}  // namespace tritax
