// A sparse matrix of a schedule by its structure: which elements are there, row by row (compressed sparse
// rows). Its values are data, in a buffer of 1 × nonzeros. In the words of load balancing (loops,
// arXiv:2301.04792) a nonzero is an *atom*, a unit of work, a row a *tile*, a set of atoms that belong
// together, and the matrix a *tile set*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tritax {

struct SparseMatrix {
  std::string name;
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::vector<std::int32_t> offsets;  // rows + 1: row i has the nonzeros [offsets[i], offsets[i + 1])
  std::vector<std::int32_t> columns;  // of every nonzero

  std::int32_t nonzeros() const { return static_cast<std::int32_t>(columns.size()); }
  std::int32_t begin(std::int32_t row) const { return offsets[static_cast<std::size_t>(row)]; }
  std::int32_t end(std::int32_t row) const { return offsets[static_cast<std::size_t>(row) + 1]; }
  std::int32_t length(std::int32_t row) const { return end(row) - begin(row); }
};

// Why this is no matrix, or "": offsets that do not begin with 0, fall, or miss the number of columns; a
// column out of range.
std::string fault_of(const SparseMatrix& matrix);

// Elements of all kinds that a sparse matrix may have.
inline constexpr std::int64_t kMostNonzeros = std::int64_t{1} << 28;

}  // namespace tritax
