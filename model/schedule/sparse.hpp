// Describes the structure of a schedule's sparse matrix: the positions of nonzeros, row by row (compressed
// sparse rows). The values are data, in a buffer of 1 × nonzeros. In the terms of load balancing (loops,
// arXiv:2301.04792) a nonzero is an *atom* (a unit of work), a row is a *tile* (a set of atoms), and the
// matrix is a *tile set*.
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
  std::vector<std::int32_t> columns;  // column of every nonzero

  std::int32_t nonzeros() const { return static_cast<std::int32_t>(columns.size()); }
  std::int32_t begin(std::int32_t row) const { return offsets[static_cast<std::size_t>(row)]; }
  std::int32_t end(std::int32_t row) const { return offsets[static_cast<std::size_t>(row) + 1]; }
  std::int32_t length(std::int32_t row) const { return end(row) - begin(row); }
};

// Why the structure is invalid, or "": offsets that do not begin with 0, that decrease, or whose last is not
// the number of nonzeros; a column out of range.
std::string fault_of(const SparseMatrix& matrix);

// Most nonzeros of a sparse matrix.
inline constexpr std::int64_t kMostNonzeros = std::int64_t{1} << 28;

}  // namespace tritax
