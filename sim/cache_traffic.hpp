// What the caches of a run were asked for and what they had, by GPU, die, buffer and operation.
//
// What operations read is served by the first level that has it:
//
//     asked = L2 hits + hits in the last-level cache + read from HBM
//
// for every row, and so for every sum of rows. What peers and copy engines read, and what atomics add to,
// passes the L2s by and comes from HBM: rows of no die, which count in no hit rate. A matrix operand is asked
// for once a tile, however many requests of its workgroup or its neighbours coalesce before the L2.
//
// Written is what the memory had to write for the operation, once its results left the caches, or to make
// room for its operands among what was written before the run; results that stay in a cache until the end are
// not in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/schedule/op_traits.hpp"

namespace tritax {

struct CacheTraffic {
  double asked_bytes = 0;
  double l2_hit_bytes = 0;
  double llc_hit_bytes = 0;  // of what missed L2
  double hbm_read_bytes = 0;
  double hbm_written_bytes = 0;

  CacheTraffic& operator+=(const CacheTraffic& more);
};

// Of one kind of operation on one buffer of a GPU, through the L2 of one die.
struct CacheRow {
  std::int32_t rank = 0;
  std::int32_t die = -1;  // -1: past the L2s
  std::int32_t buffer = 0;
  OpKind operation = OpKind::matmul;
  CacheTraffic traffic;
};

// Share of the bytes asked of L2s that hit, 0 if none were asked.
double l2_hit(std::span<const CacheRow> rows);

// Share of the bytes that missed an L2 that the last-level cache had, 0 if none missed.
double llc_hit(std::span<const CacheRow> rows);

// Read and written, by all rows.
double hbm_bytes(std::span<const CacheRow> rows);

// Adds up while a run goes on. Of thousands of operations on a few buffers: a table with a place for whatever
// may come, of which the rows that had any traffic are the result.
class CacheCounters {
 public:
  CacheCounters(std::int32_t ranks, std::int32_t dies, std::size_t buffers)
      : ranks_(ranks), dies_(dies), column_of_(buffers * kOpTraits.size(), kNone) {}

  // `die` -1: past the L2s. Good until the next call.
  CacheTraffic& at(std::int32_t rank, std::int32_t die, std::int32_t buffer, OpKind operation) {
    const std::size_t what =
        static_cast<std::size_t>(buffer) * kOpTraits.size() + static_cast<std::size_t>(operation);
    if (column_of_[what] == kNone) add_column(what);
    return table_[column_of_[what] + static_cast<std::size_t>(rank * (dies_ + 1) + die + 1)];
  }

  // By rank, die, buffer and operation.
  std::vector<CacheRow> rows() const;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  void add_column(std::size_t what);

  std::int32_t ranks_ = 0;
  std::int32_t dies_ = 0;
  std::vector<std::size_t> column_of_;  // by buffer and kind: where it begins in table_
  std::vector<CacheTraffic> table_;
};

}  // namespace tritax
