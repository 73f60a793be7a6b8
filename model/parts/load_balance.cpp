#include "model/parts/load_balance.hpp"

#include <algorithm>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

std::int64_t merge_steps(const SparseMatrix& matrix) { return std::int64_t{matrix.rows} + matrix.nonzeros(); }

// The first row whose end lies behind the step; calls `visit` for every row that the search reads.
template <typename Visit>
std::int32_t search_merge_path(const SparseMatrix& matrix, std::int64_t diagonal, Visit visit) {
  auto low = static_cast<std::int32_t>(std::max<std::int64_t>(0, diagonal - matrix.nonzeros()));
  auto high = static_cast<std::int32_t>(std::min<std::int64_t>(diagonal, matrix.rows));
  while (low < high) {
    const std::int32_t middle = low + (high - low) / 2;
    visit(middle);
    if (matrix.end(middle) <= diagonal - middle - 1) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The range between two steps.
WorkRange merge_range(const SparseMatrix& matrix, std::int64_t begin, std::int64_t end) {
  WorkRange range;
  range.row = merge_path_row(matrix, begin);
  range.k_begin = static_cast<std::int32_t>(begin - range.row);
  const std::int32_t last = merge_path_row(matrix, end);
  range.k_end = static_cast<std::int32_t>(end - last);
  // Only the end of this row is left: the range with its last nonzero accounts for the row.
  if (range.row < last && range.k_begin == matrix.end(range.row) && range.k_begin > matrix.begin(range.row)) {
    ++range.row;
  }
  const bool begins_another = last < matrix.rows && range.k_end > std::max(range.k_begin, matrix.begin(last));
  range.rows = last - range.row + (begins_another ? 1 : 0);
  return range;
}

}  // namespace

bool shares_first_row(const SparseMatrix& matrix, const WorkRange& range) {
  return range.rows > 0 && (range.k_begin > matrix.begin(range.row) ||
                            (range.rows == 1 && range.k_end < matrix.end(range.row)));
}

bool shares_last_row(const SparseMatrix& matrix, const WorkRange& range) {
  return range.rows > 0 && (range.k_end < matrix.end(range.row + range.rows - 1) ||
                            (range.rows == 1 && range.k_begin > matrix.begin(range.row)));
}

std::vector<WorkRange> mapped_rows(const SparseMatrix& matrix, std::int32_t rows_of_workgroup) {
  TRITAX_ASSERT(rows_of_workgroup >= 1, "a workgroup takes rows");
  std::vector<WorkRange> ranges;
  for (std::int32_t row = 0; row < matrix.rows;) {
    const std::int32_t rows = std::min(rows_of_workgroup, matrix.rows - row);
    ranges.push_back({row, rows, matrix.begin(row), matrix.end(row + rows - 1)});
    row += rows;
  }
  return ranges;
}

std::int32_t merge_path_row(const SparseMatrix& matrix, std::int64_t diagonal) {
  return search_merge_path(matrix, diagonal, [](std::int32_t) {});
}

std::vector<std::int32_t> merge_path_probes(const SparseMatrix& matrix, std::int64_t diagonal) {
  std::vector<std::int32_t> probes;
  search_merge_path(matrix, diagonal, [&](std::int32_t row) { probes.push_back(row); });
  return probes;
}

std::vector<WorkRange> merge_path(const SparseMatrix& matrix, std::int64_t items) {
  TRITAX_ASSERT(items >= 1, "a workgroup takes items");
  std::vector<WorkRange> ranges;
  const std::int64_t steps = merge_steps(matrix);
  for (std::int64_t begin = 0; begin < steps; begin += items) {
    ranges.push_back(merge_range(matrix, begin, std::min(begin + items, steps)));
  }
  return ranges;
}

std::vector<WorkRange> work_oriented(const SparseMatrix& matrix, std::int32_t workgroups) {
  TRITAX_ASSERT(workgroups >= 1, "somebody works");
  std::vector<WorkRange> ranges;
  for (std::int32_t p = 0; p < workgroups; ++p) {
    const Share share = share_of(merge_steps(matrix), p, workgroups);
    ranges.push_back(merge_range(matrix, share.begin, share.end));
  }
  return ranges;
}

Buckets buckets_of(const SparseMatrix& matrix, std::array<std::int32_t, 2> limits) {
  Buckets buckets;
  const auto bucket_of = [&](std::int32_t row) {
    const std::int32_t length = matrix.length(row);
    return length <= limits[0] ? 0 : length <= limits[1] ? 1 : 2;
  };
  for (int bucket = 0; bucket < 3; ++bucket) {
    for (std::int32_t row = 0; row < matrix.rows; ++row) {
      if (bucket_of(row) == bucket) buckets.order.push_back(row);
    }
    buckets.begin[static_cast<std::size_t>(bucket) + 1] = static_cast<std::int32_t>(buckets.order.size());
  }
  return buckets;
}

}  // namespace tritax
