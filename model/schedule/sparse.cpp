#include "model/schedule/sparse.hpp"

#include <fmt/format.h>

namespace tritax {

std::string fault_of(const SparseMatrix& matrix) {
  if (matrix.rows < 1 || matrix.cols < 1) {
    return fmt::format("{}×{}; give at least one row and one column", matrix.rows, matrix.cols);
  }
  if (matrix.offsets.size() != static_cast<std::size_t>(matrix.rows) + 1) {
    return fmt::format("{} offsets for {} rows; give one more than rows", matrix.offsets.size(), matrix.rows);
  }
  if (static_cast<std::int64_t>(matrix.columns.size()) > kMostNonzeros) {
    return fmt::format("{} nonzeros; a matrix has at most {}", matrix.columns.size(), kMostNonzeros);
  }
  if (matrix.offsets.front() != 0) {
    return fmt::format("offset 0 is {}; the first row begins at 0", matrix.offsets.front());
  }
  for (std::int32_t row = 0; row < matrix.rows; ++row) {
    if (matrix.length(row) >= 0) continue;
    return fmt::format("offset {} is {}, less than {} before it", row + 1, matrix.end(row),
                       matrix.begin(row));
  }
  if (static_cast<std::size_t>(matrix.offsets.back()) != matrix.columns.size()) {
    return fmt::format("the last offset is {} and there are {} columns; they must be the same",
                       matrix.offsets.back(), matrix.columns.size());
  }
  for (std::size_t i = 0; i < matrix.columns.size(); ++i) {
    if (matrix.columns[i] >= 0 && matrix.columns[i] < matrix.cols) continue;
    return fmt::format("column {} of nonzero {}; there are {} columns", matrix.columns[i], i, matrix.cols);
  }
  return {};
}

}  // namespace tritax
