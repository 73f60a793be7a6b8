#include "model/schedule/accumulator.hpp"

#include <fmt/format.h>

#include "model/schedule/op_traits.hpp"

namespace tritax {

std::string Accumulator::after(const Op& op, std::size_t claim) {
  const AccumulatorUse use = traits_of(op.kind).accumulator;
  if (use == AccumulatorUse::written_out) return written_out(op, claim);
  if (holds_ == Holds::unknown && use != AccumulatorUse::replaced) return {};
  const bool takes_rows = op.kind == OpKind::rms_norm || op.kind == OpKind::row_dot;
  if (takes_rows && holds_ != Holds::tile) {
    return fmt::format("{} rows that nothing has filled; a matmul, load or reduce must come before",
                       op.kind == OpKind::rms_norm ? "normalises" : "multiplies");
  }
  const bool replaces = use == AccumulatorUse::replaced || holds_ != Holds::tile ||
                        (use == AccumulatorUse::multiplied_into && stored_);
  const std::int32_t rows = op.rect.rows;
  const std::int32_t cols = op.kind == OpKind::combine ? op.rect.cols - 1 : op.rect.cols;
  if (cols < 1) return "combines one column; the last holds log-sum-exps, and results come before it";
  if (replaces) {
    holds_ = Holds::tile;
    stored_ = false;
    merges_ = merges(op.kind);
    of_rows_ = op.kind == OpKind::sparse_product;
    row_ = op.rect.row;
    rows_ = rows;
    cols_ = cols;
    return {};
  }
  if (of_rows_) return "adds to rows of a sparse product, which nothing goes on with; begin anew with a load";
  if (merges_ == merges(op.kind)) {
    std::string fault = fault_of_shape(rows, cols);
    if (op.kind == OpKind::row_dot) {
      cols_ = 1;
      stored_ = false;
    }
    return fault;
  }
  if (merges_) {
    return "adds to what attention has left, which only attend and combine go on with; begin anew with a "
           "load, or with a matmul behind a store";
  }
  return "merges into an accumulator without log-sum-exps, which only attend and combine leave; begin anew "
         "with an attend behind a store, or in another workgroup";
}

std::string Accumulator::written_out(const Op& op, std::size_t claim) {
  switch (holds_) {
    case Holds::nothing:
      if (filled_) return {};
      return "the accumulator is empty; a matmul, attend, load, reduce or combine must come before";
    case Holds::either:
      return fmt::format(
          "what the accumulator holds depends on whether operation {} (claim) skips its block; store inside "
          "the block, or fill the accumulator behind it",
          claim);
    case Holds::tile: {
      stored_ = true;
      if (of_rows_) return fault_of_rows(op.rect);
      const bool partial = op.kind == OpKind::store && merges_ && op.rect.cols == cols_ + 1;
      return fault_of_shape(op.rect.rows, partial ? cols_ : op.rect.cols);
    }
    case Holds::unknown:
      break;
  }
  return {};
}

void Accumulator::meet(const Accumulator& before) {
  const bool any_will_do = before.holds_ == Holds::nothing && filled_;
  const bool same = before.is_tile(rows_, cols_) && before.merges_ == merges_ &&
                    before.of_rows_ == of_rows_ && (!of_rows_ || before.row_ == row_);
  if (holds_ == Holds::tile && !same && before.holds_ != Holds::unknown && !any_will_do) {
    holds_ = Holds::either;
  }
}

// Rows of a sparse_product must be written to the same rows of a buffer of one column.
std::string Accumulator::fault_of_rows(const Rect& rect) const {
  if (rect.cols == 1 && rect.row >= row_ && rect.row + rect.rows <= row_ + rows_) return {};
  return fmt::format("rows [{}, {}) of {} columns while the accumulator holds rows [{}, {}) of one", rect.row,
                     rect.row + rect.rows, rect.cols, row_, row_ + rows_);
}

std::string Accumulator::fault_of_shape(std::int32_t rows, std::int32_t cols) const {
  if (is_tile(rows, cols)) return {};
  return fmt::format("a tile of {}×{} while the accumulator holds {}×{}", rows, cols, rows_, cols_);
}

}  // namespace tritax
