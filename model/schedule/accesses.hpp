// Which operations read and write which data, and which of them meet. Internal to model/schedule.
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

// All writes of one workgroup run to one rectangle that are of one kind. Program order is known among them,
// so that a question about all of them takes a search, not a question for each: else a long workgroup that
// works on one tile would meet itself in as many pairs as its operations squared.
struct WriteGroup {
  Access first;
  std::uint32_t begin = 0;  // into Accesses::write_ops
  std::uint32_t end = 0;
};

// A read and the writes of common elements, or the writes of two groups.
struct Conflict {
  std::uint32_t first = 0;   // into Accesses::reads, or writes
  std::uint32_t second = 0;  // into Accesses::writes
};

struct Accesses {
  std::vector<Access> reads;             // in order of workgroup runs and operations; of atomic additions too
  std::vector<WriteGroup> writes;        // in order of workgroup runs
  std::vector<std::uint32_t> write_ops;  // operations of the groups, in program order
  std::vector<Conflict> read_write;      // in order of the reads

  std::span<const std::uint32_t> ops_of(const WriteGroup& group) const {
    return std::span(write_ops).subspan(group.begin, group.end - group.begin);
  }
};

// All accesses that may need an order, and all pairs of reads and writes that meet. An atomic addition is a
// write and a read, but does not meet other additions as a read: they commute. Left out are reads that no
// write can meet and that need none before: of buffers into which nobody writes on that rank, if the schedule
// lists no inputs or one of them fills all that is read.
Accesses find_accesses(const SyncGraph& graph);

// Pairs of groups of different workgroup runs that meet and do not commute (two atomic additions do), first <
// second.
std::vector<Conflict> find_write_conflicts(const SyncGraph& graph, const Accesses& accesses);

// The same of one workgroup run, whose program orders them: first = second where one group has several
// writes.
std::vector<Conflict> find_own_rewrites(const SyncGraph& graph, const Accesses& accesses);

}  // namespace tritax
