// Load-balancing schedules (loops, arXiv:2301.04792): which rows (tiles) and nonzeros (atoms) of a tile set
// each workgroup takes, as pure functions of the tile set. How its lanes share them is LaneSharing's.
//
//   thread-mapped   T rows a workgroup of T threads, a lane a row
//   vector-mapped   T/L rows, L lanes on a row
//   group-mapped    T rows, L lanes on L rows together
//   merge-path      as many rows and nonzeros together (merge items) as T·I, the last workgroup fewer
//   work-oriented   rows and nonzeros together in even shares over a given number of workgroups
//   bucketing       rows sorted into buckets of like length, each mapped in its own way
//
// Merge path (Merrill and Garland, SC 2016): walking through a matrix takes a step for every nonzero and one
// for the end of every row; step d lies at row r and nonzero a with r + a = d. A range of steps is one of
// nonzeros, and of the rows that it touches; a row whose nonzeros lie in several ranges is summed up from its
// parts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/schedule/sparse.hpp"

namespace tritax {

// Rows [row, row + rows), of their nonzeros [k_begin, k_end). Only the first and the last row may be parts.
struct WorkRange {
  std::int32_t row = 0;
  std::int32_t rows = 0;
  std::int32_t k_begin = 0;
  std::int32_t k_end = 0;

  std::int64_t items() const { return std::int64_t{rows} + (k_end - k_begin); }
};

// Whether other ranges have nonzeros of the first or the last row too.
bool shares_first_row(const SparseMatrix& matrix, const WorkRange& range);
bool shares_last_row(const SparseMatrix& matrix, const WorkRange& range);

// Whole rows, `rows_of_workgroup` to each workgroup: thread-mapped and group-mapped with T, vector-mapped
// with T/L, items of a queue with their chunk.
std::vector<WorkRange> mapped_rows(const SparseMatrix& matrix, std::int32_t rows_of_workgroup);

// Where step `diagonal` of the merge path lies; the nonzero is diagonal - row. In [0, rows + nonzeros].
std::int32_t merge_path_row(const SparseMatrix& matrix, std::int64_t diagonal);
// The rows whose ends a binary search for that looks at, in turn.
std::vector<std::int32_t> merge_path_probes(const SparseMatrix& matrix, std::int64_t diagonal);

// Ranges of `items` steps. A range with row ends alone that others account for has no rows.
std::vector<WorkRange> merge_path(const SparseMatrix& matrix, std::int64_t items);

// Even shares of all steps for that many workgroups: no two differ by more than one.
std::vector<WorkRange> work_oriented(const SparseMatrix& matrix, std::int32_t workgroups);

// Rows by length: up to limits[0] nonzeros, up to limits[1], more. `order` lists the rows bucket by bucket,
// each in the order of the matrix; bucket b has [begin[b], begin[b + 1]) of it.
struct Buckets {
  std::vector<std::int32_t> order;
  std::array<std::int32_t, 4> begin{};
};
Buckets buckets_of(const SparseMatrix& matrix, std::array<std::int32_t, 2> limits);

}  // namespace tritax
