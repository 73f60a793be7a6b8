// Tracks the contents of a workgroup's accumulator for the checker; see the memory model in schedule.hpp.
// Internal to model/schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/schedule/schedule.hpp"

namespace tritax {

class Accumulator {
 public:
  Accumulator() = default;
  // `filled`: Kernel::registers_filled.
  explicit Accumulator(bool filled) : filled_(filled) {}

  // Advances past an operation that fills the accumulator or writes it out. Returns why the operation has no
  // meaning, or "". `claim`: the last claim of the workgroup, for the message.
  std::string after(const Op& op, std::size_t claim);
  // After a refused operation: suppresses further messages about the accumulator.
  void forget() { holds_ = Holds::unknown; }
  // After a block of operations that may have been skipped: the accumulator may be as `before` the block.
  void meet(const Accumulator& before);

 private:
  enum class Holds : std::uint8_t {
    nothing,
    tile,
    either,  // depends on whether the last claim skipped its block
    unknown
  };
  bool is_tile(std::int32_t rows, std::int32_t cols) const {
    return holds_ == Holds::tile && rows_ == rows && cols_ == cols;
  }
  std::string written_out(const Op& op, std::size_t claim);
  std::string fault_of_rows(const Rect& rect) const;
  std::string fault_of_shape(std::int32_t rows, std::int32_t cols) const;

  Holds holds_ = Holds::nothing;
  bool filled_ = false;
  bool stored_ = false;   // the next matmul or attend starts anew
  bool merges_ = false;   // holds log-sum-exps, of attention
  bool of_rows_ = false;  // holds rows of a sparse_product: parts may be written out
  std::int32_t row_ = 0;  // the first of these rows
  std::int32_t rows_ = 0;
  std::int32_t cols_ = 0;  // columns of the result, without log-sum-exps
};

}  // namespace tritax
