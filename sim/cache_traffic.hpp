// Bytes that operations asked of the caches and bytes that the caches served, by GPU, die, buffer and
// operation.
//
// The first level that holds the data serves a read:
//
//     asked = L2 hits + hits in the last-level cache + read from HBM
//
// This holds for every row, and so for every sum of rows. Reads by peers and copy engines, and the targets of
// atomics, bypass the L2s and come from HBM: their rows belong to no die and count in no hit rate. A matrix
// operand is asked for once per tile, however many requests of the workgroup or its neighbours coalesce
// before the L2.
//
// Written bytes are the bytes that the memory writes for the operation: results that leave the caches, and
// data written before the run that makes room for the operands. Results that stay in a cache until the end of
// the run do not count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/schedule/op_traits.hpp"

namespace tritax {

struct CacheTraffic {
  double asked_bytes = 0;
  double l2_hit_bytes = 0;
  double llc_hit_bytes = 0;  // of the bytes that missed L2
  double hbm_read_bytes = 0;
  double hbm_written_bytes = 0;

  CacheTraffic& operator+=(const CacheTraffic& more);
};

// Traffic of one kind of operation on one buffer of a GPU, through the L2 of one die.
struct CacheRow {
  std::int32_t rank = 0;
  std::int32_t die = -1;  // -1: bypasses the L2s
  std::int32_t buffer = 0;
  OpKind operation = OpKind::matmul;
  CacheTraffic traffic;
};

// Share of L2 hits in the bytes asked of L2s; 0 if none were asked.
double l2_hit(std::span<const CacheRow> rows);

// Share of last-level cache hits in the bytes that missed an L2; 0 if none missed.
double llc_hit(std::span<const CacheRow> rows);

// Bytes read from and written to HBM by all rows.
double hbm_bytes(std::span<const CacheRow> rows);

// Sums traffic during a run. A few buffers see thousands of operations: the table has one place per possible
// row, and rows() returns the rows with traffic.
class CacheCounters {
 public:
  CacheCounters(std::int32_t ranks, std::int32_t dies, std::size_t buffers)
      : ranks_(ranks), dies_(dies), column_of_(buffers * kOpTraits.size(), kNone) {}

  // `die` -1: bypasses the L2s. The reference is valid until the next call.
  CacheTraffic& at(std::int32_t rank, std::int32_t die, std::int32_t buffer, OpKind operation) {
    const std::size_t what =
        static_cast<std::size_t>(buffer) * kOpTraits.size() + static_cast<std::size_t>(operation);
    if (column_of_[what] == kNone) add_column(what);
    return table_[column_of_[what] + static_cast<std::size_t>(rank * (dies_ + 1) + die + 1)];
  }

  // Sorted by rank, die, buffer and operation.
  std::vector<CacheRow> rows() const;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  void add_column(std::size_t what);

  std::int32_t ranks_ = 0;
  std::int32_t dies_ = 0;
  std::vector<std::size_t> column_of_;  // by buffer and kind: first index in table_
  std::vector<CacheTraffic> table_;
};

}  // namespace tritax
