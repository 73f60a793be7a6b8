// Load-balancing schedules (loops, arXiv:2301.04792): the rows (tiles) and nonzeros (atoms) of a tile set
// that each workgroup takes, as pure functions of the tile set. LaneSharing says how lanes share them.
//
//   thread-mapped   T rows per workgroup of T threads, one lane per row
//   vector-mapped   T/L rows, L lanes per row
//   group-mapped    T rows, L lanes on L rows together
//   merge-path      T·I rows and nonzeros together (merge items), fewer in the last workgroup
//   work-oriented   rows and nonzeros together, in even shares over a given number of workgroups
//   bucketing       rows sorted into buckets of similar length, each mapped in its own way
//
// Merge path (Merrill and Garland, SC 2016): a walk through a matrix takes one step for every nonzero and one
// for the end of every row; step d lies at row r and nonzero a with r + a = d. A range of steps is a range of
// nonzeros, and of the rows that it touches. A row with nonzeros in several ranges is summed up from its
// parts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/schedule/sparse.hpp"

namespace tritax {

// Rows [row, row + rows), and their nonzeros [k_begin, k_end). Only the first and the last row may be
// partial.
struct WorkRange {
  std::int32_t row = 0;
  std::int32_t rows = 0;
  std::int32_t k_begin = 0;
  std::int32_t k_end = 0;

  std::int64_t items() const { return std::int64_t{rows} + (k_end - k_begin); }
};

// Whether other ranges too have nonzeros of the first or the last row.
bool shares_first_row(const SparseMatrix& matrix, const WorkRange& range);
bool shares_last_row(const SparseMatrix& matrix, const WorkRange& range);

// Whole rows, `rows_of_workgroup` per workgroup: T for thread-mapped and group-mapped, T/L for vector-mapped,
// the chunk for items of a queue.
std::vector<WorkRange> mapped_rows(const SparseMatrix& matrix, std::int32_t rows_of_workgroup);

// Row of step `diagonal` of the merge path, in [0, rows + nonzeros]; the nonzero is diagonal - row.
std::int32_t merge_path_row(const SparseMatrix& matrix, std::int64_t diagonal);
// Rows whose ends the binary search for this step reads, in order.
std::vector<std::int32_t> merge_path_probes(const SparseMatrix& matrix, std::int64_t diagonal);

// Ranges of `items` steps. A range that has only row ends that other ranges account for has no rows.
std::vector<WorkRange> merge_path(const SparseMatrix& matrix, std::int64_t items);

// Even shares of all steps for `workgroups` workgroups; shares differ by one step at most.
std::vector<WorkRange> work_oriented(const SparseMatrix& matrix, std::int32_t workgroups);

// Rows by length: up to limits[0] nonzeros, up to limits[1], more. `order` lists the rows bucket by bucket,
// in the order of the matrix within a bucket; bucket b is [begin[b], begin[b + 1]) of `order`.
struct Buckets {
  std::vector<std::int32_t> order;
  std::array<std::int32_t, 4> begin{};
};
Buckets buckets_of(const SparseMatrix& matrix, std::array<std::int32_t, 2> limits);

}  // namespace tritax
