// Names for the fields of an operation that mean something else for its kind than for most (schedule.hpp).
// The regions that it reads have functions of their own (op_traits.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/schedule/schedule.hpp"

namespace tritax {

class SparseView {
 public:
  explicit SparseView(const Op& op) : op_(op) {}
  std::int32_t matrix() const { return op_.index; }  // into Schedule::sparse
  std::int32_t sharing_number() const { return op_.src_row; }
  LaneSharing sharing() const { return static_cast<LaneSharing>(op_.src_row); }
  std::int32_t lanes() const { return op_.value; }  // on a row, or on a group of rows
  std::int32_t rows_of_x() const { return op_.src_col; }
  std::int16_t values() const { return op_.src_buffer; }  // buffers
  std::int16_t x() const { return op_.b_buffer; }

 private:
  const Op& op_;
};

class AttendView {
 public:
  explicit AttendView(const Op& op) : op_(op) {}
  bool is_masked() const { return op_.value > 0; }
  std::int32_t first_unseen() const { return op_.value; }  // row of K that the first rows of Q do not see
  std::int32_t rows_alike() const { return op_.index; }    // rows of Q that see the same keys
  std::int32_t column() const { return op_.src_col; }      // first column of the head in K and V
  std::int16_t keys() const { return op_.src_buffer; }     // buffers
  std::int16_t values() const { return op_.b_buffer; }

 private:
  const Op& op_;
};

class BackwardView {
 public:
  explicit BackwardView(const Op& op) : op_(op) {}
  bool is_masked() const { return op_.value > 0; }
  // Row r of Q sees rows of K below this + r.
  std::int32_t limit() const { return op_.value; }
  std::int32_t statistics() const { return op_.index; }  // buffers
  std::int32_t query_gradients() const { return op_.src_row; }

 private:
  const Op& op_;
};

// The matrix of a sparse_product.
inline const SparseMatrix& matrix_of(const Schedule& schedule, const Op& op) {
  return *schedule.sparse[static_cast<std::size_t>(SparseView(op).matrix())];
}

}  // namespace tritax
